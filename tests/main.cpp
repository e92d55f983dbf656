// SPDX-License-Identifier: Apache-2.0
// The main function of every test program. A case that cannot run here logs it, MESSAGE("skipped: no such device"), and
// returns; if all cases that ran did only that, the program returns the code that ctest reports as skipped.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstring>

namespace {

int passed = 0, skipped = 0;

struct skip_listener : doctest::IReporter {
  explicit skip_listener(const doctest::ContextOptions&) {}

  void test_case_start(const doctest::TestCaseData&) override { said_skipped_ = false; }
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void log_message(const doctest::MessageData& message) override {
    if (std::strncmp(message.m_string.c_str(), "skipped:", 8) == 0) said_skipped_ = true;
  }
  void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
    ++(said_skipped_ && stats.numAssertsCurrentTest == 0 ? skipped : passed);
  }

  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}

 private:
  bool said_skipped_ = false;
};

REGISTER_LISTENER("skips", 1, skip_listener);

}  // namespace

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
  const int failure = context.run();
  if (failure != 0 || context.shouldExit()) return failure;
  return skipped > 0 && passed == 0 ? OCTAVO_TEST_SKIPPED : 0;
}
