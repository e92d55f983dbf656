# SPDX-License-Identifier: Apache-2.0
# Backends whose names are taken and that programs list as not compiled until a folder describes them.
set(octavo_planned_backends)
