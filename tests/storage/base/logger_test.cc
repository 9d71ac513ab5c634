#include "storage/base/logger.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <semaphore>
#include <stdexcept>
#include <thread>

#include "storage/base/mutex.h"
#include "testing/child_process.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

TEST(LoggerTest, IsSilentWithoutACallback) {
  const Logger silent;
  EXPECT_FALSE(silent.Wants(LogLevel::kError));
  silent.Log(LogLevel::kError, "store", "nobody hears this");
}

TEST(LoggerTest, DeliversLinesOfItsLevelInOrderBeforeItGoes) {
  std::vector<std::string> lines;
  {
    const Logger logger([&](const LogLine& line) { lines.push_back(line.message); },
                        LogLevel::kWarning);
    EXPECT_FALSE(logger.Wants(LogLevel::kInfo));
    for (int i = 0; i < 100; ++i) {
      logger.Log(LogLevel::kInfo, "store", "left out");
      logger.Log(LogLevel::kWarning, "store", std::to_string(i));
    }
  }
  ASSERT_EQ(lines.size(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(lines[static_cast<std::size_t>(i)], std::to_string(i));
}

TEST(LoggerTest, ACallbackMayThrow) {
  std::vector<std::string> lines;
  {
    const Logger logger(
        [&](const LogLine& line) {
          if (line.message == "bad") throw std::runtime_error("from the callback");
          lines.push_back(line.message);
        },
        LogLevel::kDebug);
    logger.Log(LogLevel::kInfo, "store", "first");
    logger.Log(LogLevel::kInfo, "store", "bad");
    logger.Log(LogLevel::kInfo, "store", "last");
  }
  EXPECT_EQ(lines, (std::vector<std::string>{"first", "last"}));
}

// The callback blocks until the test releases it, so that lines queue up.
TEST(LoggerTest, ASlowCallbackDelaysNobodyAndIsToldWhatItMissed) {
  std::binary_semaphore entered(0);
  std::binary_semaphore go_on(0);
  std::size_t delivered = 0;
  std::int64_t dropped = 0;
  {
    const Logger logger(
        [&](const LogLine& line) {
          if (line.message == "block") {
            entered.release();
            go_on.acquire();
          } else if (line.component == "log") {
            dropped = std::get<std::int64_t>(line.fields.at(0).value);
          } else {
            ++delivered;
          }
        },
        LogLevel::kDebug);
    logger.Log(LogLevel::kInfo, "store", "block");
    entered.acquire();
    for (std::size_t i = 0; i < Logger::kMaxWaiting + 7; ++i)
      logger.Log(LogLevel::kInfo, "store", "line");
    go_on.release();
  }
  EXPECT_EQ(delivered, Logger::kMaxWaiting);
  EXPECT_EQ(dropped, 7);
}

TEST(LoggerTest, TakesLinesFromManyThreads) {
  std::size_t delivered = 0;
  {
    const Logger logger([&](const LogLine&) { ++delivered; }, LogLevel::kDebug);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 200; ++i) logger.Log(LogLevel::kInfo, "store", "line");
      });
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(delivered, 800U);
}

#ifndef RHIZOME_SANITIZED
TEST(LoggerTest, AForkedChildIsSilentAndEnds) {
  auto logger = std::make_unique<Logger>([](const LogLine&) {}, LogLevel::kDebug);
  const int status = testing::RunForked([&] {
    logger->Log(LogLevel::kError, "store", "in the child");
    logger.reset();  // must not wait for a thread that was never started
    return 7;
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}
#endif

TEST(LoggerTest, WritesALineAsText) {
  LogLine line{.time = std::chrono::system_clock::time_point(std::chrono::milliseconds(1500)),
               .level = LogLevel::kWarning,
               .component = "store",
               .message = "said",
               .fields = {{"n", std::int64_t{-3}},
                          {"share", 0.5},
                          {"plain", std::string("a/b")},
                          {"odd", std::string("a \"b\"\n")},
                          {"empty", std::string()}}};
  EXPECT_EQ(ToText(line),
            "1970-01-01T00:00:01.500Z warning store: said n=-3 share=0.5 plain=a/b "
            "odd=\"a \\\"b\\\"\\n\" empty=\"\"");
}

}  // namespace
}  // namespace rhizome
