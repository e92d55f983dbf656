# SPDX-License-Identifier: Apache-2.0
# Sourced by examples/run and tests/run: what they need is there when this returns, or the script ends with code 2 and
# the line that would get it. When everything is there no package manager is called.

# The Debian and Ubuntu packages that are missing.
octavo_missing_packages() {
  local cxx=${CXX:-c++}
  echo '#include <bit>
#include <concepts>
#include <span>' | "$cxx" -std=c++20 -fsyntax-only -x c++ - 2>/dev/null || echo g++
  command -v cmake >/dev/null || echo cmake
  command -v ninja >/dev/null || echo ninja-build
  command -v gnuplot >/dev/null || echo gnuplot-nox
  octavo_has_header Eigen/Core || octavo_has_header eigen3/Eigen/Core || echo libeigen3-dev
  octavo_has_header CLI/CLI.hpp || echo libcli11-dev
  octavo_has_header doctest/doctest.h || echo doctest-dev
}

# Whether the compiler finds a header by itself or below a CMAKE_PREFIX_PATH (from the environment: a colon list).
octavo_has_header() {
  local prefix prefixes
  IFS=: read -ra prefixes <<<"${CMAKE_PREFIX_PATH:-}"
  for prefix in /usr /usr/local "${prefixes[@]}"; do
    [[ -n $prefix && -e $prefix/include/$1 ]] && return
  done
  return 1
}

# Optional ones that are missing: fuzzers, Kokkos, the simulators' fibers, AMD's HIP, a compiler cache, what gets nvdisasm. Without them parts
# are left out, and said to be.
octavo_missing_options() {
  command -v ccache >/dev/null || echo ccache
  command -v clang++-19 >/dev/null || echo clang-19
  [[ -e /usr/lib/llvm-19/lib/clang/19/lib/linux/libclang_rt.fuzzer-$(uname -m).a ]] || echo libclang-rt-19-dev
  octavo_has_header boost/context/fiber.hpp || echo libboost-context-dev
  if ! command -v hipconfig >/dev/null; then  # no ROCm: the distribution's parts of one
    command -v clang-offload-bundler-19 >/dev/null || echo clang-tools-19
    command -v ld.lld-19 >/dev/null || echo lld-19
    command -v llvm-objdump-19 >/dev/null || echo llvm-19
    octavo_has_header hip/hip_runtime.h || echo libamdhip64-dev
    compgen -G '/usr/lib/*/amdgcn/bitcode/ocml.bc' >/dev/null || echo rocm-device-libs
  fi
  if octavo_lacks_nvdisasm && ! python3 -m pip --version >/dev/null 2>&1; then echo python3-pip; fi
  octavo_has_header trilinos/Kokkos_Core.hpp || octavo_has_header Kokkos_Core.hpp || echo libtrilinos-kokkos-dev
}

# Installs what is named, if that is allowed and possible here; whoever calls looks at what came.
octavo_install() {
  local as_root=()
  if ((EUID != 0)); then as_root=(sudo -n); fi
  [[ -z ${OCTAVO_NO_INSTALL:-} || $OCTAVO_NO_INSTALL == 0 ]] || return 0
  command -v apt-get >/dev/null && { ((EUID == 0)) || sudo -n true 2>/dev/null; } || return 0
  echo "Installing $*"
  # A list that cannot be refreshed may still be good enough: the installation decides.
  "${as_root[@]}" apt-get -qq update || true
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends "$@" >/dev/null ||
    true
  hash -r
}

octavo_require_packages() {
  local missing
  mapfile -t missing < <(octavo_missing_packages)
  ((${#missing[@]})) || return 0
  octavo_install "${missing[@]}"
  mapfile -t missing < <(octavo_missing_packages)
  ((${#missing[@]})) || return 0
  {
    echo "Missing: ${missing[*]}. On Debian or Ubuntu, run"
    echo "  sudo apt-get update && sudo apt-get install --yes --no-install-recommends ${missing[*]}"
  } >&2
  exit 2
}

# NVIDIA's disassembler, for the checks of machine code, is not in every CUDA Toolkit. PyPI has it; it goes to build/tools,
# where tests/CMakeLists.txt looks, and touches no Python installation.
octavo_lacks_nvdisasm() {
  command -v nvcc >/dev/null && ! command -v nvdisasm >/dev/null &&
    ! compgen -G 'build/tools/nvidia/*/bin/nvdisasm' >/dev/null
}
octavo_install_nvdisasm() {
  [[ -z ${OCTAVO_NO_INSTALL:-} || $OCTAVO_NO_INSTALL == 0 ]] || return 0
  echo "Installing nvidia-cuda-nvdisasm (PyPI) to build/tools"
  python3 -m pip --quiet --disable-pip-version-check install --root-user-action ignore --no-deps --target build/tools \
    'nvidia-cuda-nvdisasm>=13,<14' || true  # the tests say what is missing
}

# OCTAVO_INSTALL_OPTIONAL=1 asks for the optional ones too.
octavo_ask_for_options() {
  local missing
  [[ ${OCTAVO_INSTALL_OPTIONAL:-0} != 0 ]] || return 0
  mapfile -t missing < <(octavo_missing_options)
  ((${#missing[@]} == 0)) || octavo_install "${missing[@]}"
  if octavo_lacks_nvdisasm; then octavo_install_nvdisasm; fi
}

octavo_require_packages
octavo_ask_for_options
octavo_jobs=$(nproc 2>/dev/null || echo 2)
