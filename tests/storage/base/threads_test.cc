#include "storage/base/threads.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <new>
#include <set>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "storage/base/exceptions.h"
#include "storage/base/process.h"
#include "testing/child_process.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

TEST(ExceptionsTest, EachIsAStatus) {
  const auto thrown = [](const auto& exception) {
    return Guarded([&]() -> Status { throw exception; });
  };
  EXPECT_STATUS(thrown(std::bad_alloc()), kOutOfMemory);
  EXPECT_STATUS(thrown(std::length_error("vector")), kOutOfMemory);
  const std::error_code no_thread(EAGAIN, std::system_category());
  EXPECT_STATUS(thrown(std::system_error(no_thread)), kOutOfMemory);
  const std::error_code no_file(ENOENT, std::generic_category());
  EXPECT_STATUS(thrown(std::system_error(no_file)), kNotFound);
  EXPECT_STATUS(thrown(std::runtime_error("else")), kIoError);
  EXPECT_STATUS(thrown(1), kIoError);
  const auto result = Guarded([]() -> Result<int> { throw std::bad_alloc(); });
  EXPECT_STATUS(result, kOutOfMemory);
  EXPECT_OK(Guarded([] { return Status::Ok(); }));
}

TEST(ThreadTest, ItsErrorAndItsExceptionComeBackWhereItIsJoined) {
  Thread thread;
  EXPECT_OK(thread.Join());
  ASSERT_OK(thread.Start([] { return Status::Busy("so"); }));
  EXPECT_STATUS(thread.Join(), kBusy);
  ASSERT_OK(thread.Start([]() -> Status { throw std::bad_alloc(); }));
  EXPECT_STATUS(thread.Join(), kOutOfMemory);
  ASSERT_OK(thread.Start([] { return Status::Ok(); }));
  EXPECT_OK(thread.Join());
}

TEST(ThreadTest, AllThreadsDoTheWorkAndTheFirstErrorCounts) {
  std::atomic<int> calls = 0;
  EXPECT_OK(RunOnThreads(4, [&] {
    ++calls;
    return Status::Ok();
  }));
  EXPECT_EQ(calls, 4);
  EXPECT_STATUS(RunOnThreads(4,
                             [&]() -> Status {
                               if (calls++ == 5) throw std::bad_alloc();
                               return Status::Ok();
                             }),
                kOutOfMemory);
  EXPECT_EQ(calls, 8);
}

TEST(ProcessTest, AChildKnowsThatItIsOne) {
  const OwnerProcess owner;
  EXPECT_TRUE(owner.here());
  EXPECT_OK(owner.Check("this"));
  const std::uint64_t forks = ForkCount();
  EXPECT_EQ(testing::RunForked([&] {
              const Status status = owner.Check("this");
              const bool right =
                  !owner.here() && OwnerProcess().here() && ForkCount() != forks &&
                  status.message().find(std::to_string(getppid())) != std::string::npos;
              return right ? 0 : 1;
            }),
            0);
  EXPECT_TRUE(owner.here());
}

// A forked child can lock the mutex, even while other threads of the parent use it.
TEST(ProcessTest, AChildCanLockAForkMutex) {
  ForkMutex mutex;
  std::atomic<bool> done = false;
  std::thread busy([&] {
    while (!done) const MutexLock lock(mutex);
  });
  std::thread maker([&] {
    while (!done) const ForkMutex passing;
  });
  for (int i = 0; i < 50; ++i) {
    const auto lock_both = [&] {
      { const MutexLock lock(mutex); }
      { const ForkMutex fresh; }
      return 0;
    };
    EXPECT_EQ(testing::RunForked(lock_both, 20), 0);
  }
  done = true;
  busy.join();
  maker.join();
}

}  // namespace
}  // namespace rhizome
