#include "storage/io/io_queue.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "rhizome/file_system.h"
#include "storage/base/hash.h"
#include "storage/io/files.h"
#include "testing/child_process.h"
#include "testing/forbid_call.h"
#include "testing/sanitizer.h"
#include "testing/testing.h"

// Tests of IoQueue with every kind of queue, buffered and direct. A hook changes the outcome of
// single reads, so that short, interrupted, refused and failed reads can be tested.

namespace rhizome {
namespace {

using testing::TempDir;

// Byte i of the file is a function of i, so that a misplaced byte is noticed.
std::byte Expected(std::uint64_t offset) {
  return static_cast<std::byte>((offset * 2654435761U) >> 13);
}

void WriteTestFile(const Path& path, std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = Expected(i);
  ASSERT_OK(WriteWholeFile(FileSystem::Posix(), path, data));
}

// A file that can be read only through ReadAt, like a file of the fake file system.
class HiddenFile : public ReadableFile {
 public:
  HiddenFile(std::unique_ptr<ReadableFile> real, std::size_t max_read)
      : real_(std::move(real)), max_read_(max_read) {}
  Result<std::size_t> ReadAt(std::uint64_t offset, std::span<std::byte> out) override {
    if (fail_) return Fail(Status::OutOfMemory("the hidden file's own words"));
    return real_->ReadAt(offset, out.first(std::min(out.size(), max_read_)));
  }
  std::uint64_t size_bytes() const override { return real_->size_bytes(); }
  const Path& path() const override { return real_->path(); }
  std::uint32_t alignment_bytes() const override { return real_->alignment_bytes(); }
  void Break() { fail_ = true; }

 private:
  std::unique_ptr<ReadableFile> real_;
  std::size_t max_read_;
  bool fail_ = false;
};

struct Case {
  IoMaker maker;
  bool direct;
  bool registered;
};

std::string NameOfOfIoQueue(const ::testing::TestParamInfo<Case>& info) {
  return std::string(IoMakerName(info.param.maker)) +
         (info.param.direct ? "_direct" : "_buffered") +
         (info.param.registered ? "_registered" : "");
}

using Hook = std::function<std::int64_t(const ReadRequest&, std::int64_t)>;

class IoQueueTest : public ::testing::TestWithParam<Case> {
 protected:
  // The size is not a multiple of any alignment, so the last unit is incomplete.
  static constexpr std::size_t kFileBytes = 1'000'003;

  void SetUp() override {
    path_ = dir_ / "data";
    WriteTestFile(path_, kFileBytes);
    Result<AlignedBuffer> memory = AlignedBuffer::Allocate(8 << 20);
    ASSERT_OK(memory);
    memory_ = *std::move(memory);
    Reopen();
    if (GetParam().direct && unit_ == 1) GTEST_SKIP() << "no O_DIRECT in " << dir_.path();
    if (!Make()) GTEST_SKIP() << "io_uring is forbidden here";
  }

  void Reopen() {
    auto file = FileSystem::Posix().OpenRead(path_, {.direct = GetParam().direct});
    ASSERT_OK(file);
    file_ = *std::move(file);
    unit_ = file_->alignment_bytes();
  }

  bool Make(Hook hook = {}, std::uint32_t depth = 16) {
    queue_.reset();
    auto queue = IoQueue::Open({.maker = GetParam().maker,
                                .depth = depth,
                                .pread_threads = 4,
                                .fault_hook = std::move(hook)});
    if (!queue) {
      EXPECT_STATUS(queue, kUnsupported);
      return false;
    }
    queue_ = *std::move(queue);
    if (GetParam().registered) queue_->RegisterMemory(memory_.bytes());
    return true;
  }

  // Returns a request at an aligned offset. `slot` selects 64 KiB of memory that no other slot
  // uses.
  ReadRequest Request(std::uint64_t offset, std::size_t bytes, std::size_t slot) {
    return {
        .file = file_.get(),
        .offset_bytes = offset / unit_ * unit_,
        .buffer = memory_.bytes().subspan(slot * (64 << 10), (bytes + unit_ - 1) / unit_ * unit_)};
  }

  std::vector<ReadRequest> RandomRequests(std::size_t count, std::mt19937_64& random) {
    std::vector<ReadRequest> out;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t bytes = 1 + random() % 20'000;
      out.push_back(Request(random() % (kFileBytes - 40'000), bytes, i % 128));
    }
    return out;
  }

  static void ExpectFilled(const ReadRequest& request) {
    ASSERT_OK(request.status);
    const std::size_t end =
        std::min<std::uint64_t>(request.buffer.size(), kFileBytes - request.offset_bytes);
    std::size_t right = 0;
    while (right < end && request.buffer[right] == Expected(request.offset_bytes + right)) ++right;
    EXPECT_EQ(right, end) << "wrong byte at offset " << request.offset_bytes + right;
  }

  // Fills the memory with wrong bytes, reads, and compares all bytes.
  void ReadAndCheck(std::span<ReadRequest> requests) {
    for (ReadRequest& request : requests)
      std::fill(request.buffer.begin(), request.buffer.end(), std::byte{0xAA});
    ASSERT_OK(queue_->ReadAll(requests));
    for (const ReadRequest& request : requests) ExpectFilled(request);
    EXPECT_EQ(queue_->in_flight(), 0U);
  }

  TempDir dir_;
  Path path_;
  AlignedBuffer memory_;
  std::unique_ptr<ReadableFile> file_;
  std::unique_ptr<IoQueue> queue_;
  std::uint32_t unit_ = 1;
};

INSTANTIATE_TEST_SUITE_P(
    Makers, IoQueueTest,
    ::testing::Values(Case{IoMaker::kUring, false, false}, Case{IoMaker::kUring, true, false},
                      Case{IoMaker::kUring, false, true}, Case{IoMaker::kUring, true, true},
                      Case{IoMaker::kPread, false, false}, Case{IoMaker::kPread, true, false}),
    NameOfOfIoQueue);

TEST_P(IoQueueTest, ReadsManyRangesAtOnce) {
  std::mt19937_64 random(testing::TestSeed());
  for (const std::uint32_t depth : {1U, 3U, 128U}) {
    ASSERT_TRUE(Make({}, depth));
    EXPECT_EQ(queue_->maker(), GetParam().maker);
    std::vector<ReadRequest> requests = RandomRequests(128, random);
    ReadAndCheck(requests);
    const IoStats stats = queue_->stats();
    std::uint64_t bytes = 0;
    for (const ReadRequest& request : requests) bytes += request.buffer.size();
    EXPECT_EQ(stats.reads, 128U);
    EXPECT_EQ(stats.read_bytes, bytes);
    EXPECT_GE(stats.mean_depth, 1.0);
    EXPECT_LE(stats.mean_depth, depth);
  }
}

TEST_P(IoQueueTest, SubmitTakesWhatFitsAndReapReturnsEachOnce) {
  ASSERT_TRUE(Make({}, 4));
  std::mt19937_64 random(testing::TestSeed());
  std::vector<ReadRequest> requests = RandomRequests(50, random);
  std::map<const ReadRequest*, int> seen;
  std::size_t next = 0;
  while (next < requests.size() || queue_->in_flight() > 0) {
    const auto started = queue_->Submit(std::span(requests).subspan(next));
    ASSERT_OK(started);
    next += *started;
    EXPECT_LE(queue_->in_flight(), 4U);
    const std::size_t wanted = std::min<std::size_t>(queue_->in_flight(), random() % 5);
    const auto done = queue_->Reap(wanted);
    ASSERT_OK(done);
    EXPECT_GE(done->size(), wanted);
    for (const ReadRequest* request : *done) ++seen[request];
  }
  EXPECT_EQ(seen.size(), requests.size());
  for (const auto& [request, times] : seen) {
    EXPECT_EQ(times, 1);
    ExpectFilled(*request);
  }
  EXPECT_TRUE(queue_->Reap(3)->empty());  // no reads in flight: returns at once
}

// The padding of the last unit is unspecified; the bytes of the file must be correct.
TEST_P(IoQueueTest, ReadsTheTailOfTheFile) {
  const std::uint64_t begin = (kFileBytes - 5000) / unit_ * unit_;
  ReadRequest request = Request(begin, kFileBytes - begin, 0);
  ReadAndCheck(std::span(&request, 1));
}

TEST_P(IoQueueTest, AnEmptyRequestIsDone) {
  ReadRequest request = {.file = file_.get(), .offset_bytes = 0, .buffer = {}};
  EXPECT_OK(queue_->ReadAll(std::span(&request, 1)));
  EXPECT_OK(queue_->ReadAll({}));
}

TEST_P(IoQueueTest, ReadingPastTheEndIsCorruption) {
  const std::uint64_t past = (kFileBytes + unit_ - 1) / unit_ * unit_;
  for (const std::uint64_t offset : {past, past + 4096 * 100}) {
    ReadRequest request = Request(offset, 4096, 0);
    EXPECT_STATUS(queue_->ReadAll(std::span(&request, 1)), kCorruption);
  }
  if (GetParam().direct) return;
  ReadRequest request = {
      .file = file_.get(), .offset_bytes = kFileBytes - 10, .buffer = memory_.bytes().first(11)};
  EXPECT_STATUS(queue_->ReadAll(std::span(&request, 1)), kCorruption);
}

// Reads into registered memory and into other memory share one queue.
TEST_P(IoQueueTest, ReadsIntoOtherMemoryToo) {
  const Result<AlignedBuffer> other = AlignedBuffer::Allocate(64 << 10);
  ASSERT_OK(other);
  ReadRequest requests[] = {Request(4096, 8192, 0), Request(8192, 8192, 1)};
  requests[1].buffer = other->bytes().first(8192);
  ReadAndCheck(requests);
}

TEST_P(IoQueueTest, ShortReadsAreContinued) {
  // A queue that receives part of a unit 16 times in a row treats it as the end of the file. The
  // test cuts each read fewer times than that.
  constexpr int kMaxCutsInARow = 8;
  std::mutex mutex;
  std::mt19937_64 random(testing::TestSeed());
  std::map<const ReadRequest*, int> cuts;
  ASSERT_TRUE(Make([&](const ReadRequest& request, std::int64_t outcome) {
    const std::lock_guard lock(mutex);
    int& in_a_row = cuts[&request];
    const bool cut = outcome > 1 && in_a_row < kMaxCutsInARow && random() % 2 == 0;
    in_a_row = cut ? in_a_row + 1 : 0;
    return cut ? 1 + static_cast<std::int64_t>(random() % outcome) : outcome;
  }));
  for (int round = 0; round < 5; ++round) {
    std::vector<ReadRequest> requests = RandomRequests(64, random);
    requests.push_back(Request(kFileBytes - 3000, 3000 + unit_, 100));
    if (!GetParam().direct)
      requests.back().buffer = memory_.bytes().subspan(100 * (64 << 10), 3000);
    ReadAndCheck(requests);
  }
  EXPECT_GT(queue_->stats().retries, 0U);
}

TEST_P(IoQueueTest, InterruptedReadsAreRetried) {
  for (const int error : {EINTR, EAGAIN}) {
    std::atomic<int> calls{0};
    ASSERT_TRUE(Make([&, error](const ReadRequest&, std::int64_t outcome) {
      return calls++ % 3 != 2 ? -error : outcome;
    }));
    std::mt19937_64 random(testing::TestSeed());
    std::vector<ReadRequest> requests = RandomRequests(8, random);
    // Reads the requests one at a time, so that each fails twice and then succeeds.
    for (ReadRequest& request : requests) ReadAndCheck(std::span(&request, 1));
    EXPECT_EQ(queue_->stats().retries, 2U * requests.size());
  }
}

TEST_P(IoQueueTest, ARefusalOfRingReadsLeavesThemToPread) {
  std::atomic<int> calls{0};
  ASSERT_TRUE(Make([&](const ReadRequest&, std::int64_t outcome) {
    return calls++ < 12 ? -EAGAIN : outcome;  // more often than the ring retries
  }));
  ReadRequest request = Request(0, 10'000, 0);
  ReadAndCheck(std::span(&request, 1));
}

// A ring cancels the requests of a thread that has ended.
TEST_P(IoQueueTest, ACancelledReadIsLeftToPread) {
  std::mutex mutex;
  std::map<const ReadRequest*, int> asked;
  ASSERT_TRUE(Make([&](const ReadRequest& request, std::int64_t outcome) {
    const std::lock_guard lock(mutex);
    return asked[&request]++ == 0 ? -ECANCELED : outcome;
  }));
  std::mt19937_64 random(testing::TestSeed());
  std::vector<ReadRequest> requests = RandomRequests(50, random);
  ReadAndCheck(requests);
  EXPECT_EQ(queue_->stats().retries, requests.size());
}

// A child that uses the parent's queue gets an error and does not touch the ring or the threads.
TEST_P(IoQueueTest, AForkedChildIsRefused) {
  if (testing::kThreadSanitized && GetParam().maker == IoMaker::kPread)
    GTEST_SKIP() << "the child's queue would start threads";
  ASSERT_TRUE(Make());
  std::mt19937_64 random(testing::TestSeed());
  std::vector<ReadRequest> requests = RandomRequests(16, random);
  for (int i = 0; i < 5; ++i) {
    ASSERT_OK(queue_->Submit(requests));
    auto child = testing::ChildProcess::Fork([&] {
      std::vector<ReadRequest> own = RandomRequests(8, random);
      const Status read = queue_->ReadAll(own);
      const auto reaped = queue_->Reap(1);
      const bool refused = read.code() == StatusCode::kInvalidArgument &&
                           read.message().find("fork") != std::string::npos && !reaped;
      queue_ = nullptr;  // must not wait for reads in flight
      // A queue that the child opens itself works.
      const auto fresh = IoQueue::Open({.maker = GetParam().maker});
      const bool reads = fresh && (*fresh)->ReadAll(own).ok();
      return refused && reads ? 0 : 1;
    });
    while (queue_->in_flight() > 0) ASSERT_OK(queue_->Reap(1));
    for (const ReadRequest& request : requests) ExpectFilled(request);
    EXPECT_EQ(child.Wait(), 0);
    ReadAndCheck(requests);
  }
}

// After the error is returned, no read writes into the buffers.
TEST(UringQueueTest, ABrokenRingHasLetGoOfTheBuffers) {
  constexpr std::size_t kReads = 16;
  constexpr std::size_t kReadBytes = 1 << 20;
  TempDir dir;
  WriteTestFile(dir / "data", kReads * kReadBytes);
  const auto file = FileSystem::Posix().OpenRead(dir / "data", {.direct = true});
  const auto memory = AlignedBuffer::Allocate(kReads * kReadBytes);
  ASSERT_OK(file);
  ASSERT_OK(memory);
  std::string skipped;
  std::thread thread([&] {  // only this thread is sandboxed
    auto queue = IoQueue::Open({.maker = IoMaker::kUring, .depth = kReads});
    if (!queue) {
      skipped = queue.error().message();
      return;
    }
    std::vector<ReadRequest> requests;
    for (std::size_t i = 0; i < kReads; ++i)
      requests.push_back({.file = file->get(),
                          .offset_bytes = i * kReadBytes,
                          .buffer = memory->bytes().subspan(i * kReadBytes, kReadBytes)});
    ASSERT_OK((*queue)->Submit(requests));
    if (!testing::ForbidCall(SYS_io_uring_enter, EPERM)) {
      skipped = "seccomp is forbidden here";
      return;
    }
    const auto reaped = (*queue)->Reap(kReads);
    if (reaped) return;  // the disk was faster
    EXPECT_STATUS(reaped, kIoError);
    EXPECT_EQ((*queue)->in_flight(), 0U);
    std::fill(memory->bytes().begin(), memory->bytes().end(), std::byte{0xAA});
    EXPECT_STATUS((*queue)->Submit(requests), kIoError);
    *queue = nullptr;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_TRUE(std::all_of(memory->bytes().begin(), memory->bytes().end(),
                            [](std::byte byte) { return byte == std::byte{0xAA}; }));
  });
  thread.join();
  if (!skipped.empty()) GTEST_SKIP() << skipped;
}

// GraphBolt's reader loops endlessly on the last two of these faults.
TEST_P(IoQueueTest, PersistentFaultsEndQuickly) {
  const std::pair<std::int64_t, StatusCode> faults[] = {
      {-EINTR, StatusCode::kIoError},  {-EAGAIN, StatusCode::kIoError},
      {-EIO, StatusCode::kIoError},    {-EBADF, StatusCode::kIoError},
      {-EINVAL, StatusCode::kIoError}, {-ECANCELED, StatusCode::kIoError},
      {0, StatusCode::kCorruption}};
  for (const auto& [fault, code] : faults) {
    const std::int64_t outcome = fault;
    ASSERT_TRUE(Make([outcome](const ReadRequest&, std::int64_t) { return outcome; }));
    std::mt19937_64 random(testing::TestSeed());
    std::vector<ReadRequest> requests = RandomRequests(100, random);
    const auto begin = std::chrono::steady_clock::now();
    const Status status = queue_->ReadAll(requests);
    // The limit only excludes an endless loop. A loaded machine can easily lose a second.
    EXPECT_LT(std::chrono::steady_clock::now() - begin,
              std::chrono::seconds(10 * testing::Patience()));
    EXPECT_EQ(status.code(), code) << fault << ": " << status.ToString();
    EXPECT_NE(status.message().find(path_.string()), std::string::npos) << status.message();
    for (const ReadRequest& request : requests) EXPECT_EQ(request.status.code(), code);
    EXPECT_EQ(queue_->in_flight(), 0U);
  }
}

TEST_P(IoQueueTest, OneByteReadsThatNeverFillAUnitEnd) {
  ASSERT_TRUE(Make([](const ReadRequest&, std::int64_t) { return 1; }));
  ReadRequest request = Request(4096, 4096, 0);
  const Status status = queue_->ReadAll(std::span(&request, 1));
  if (GetParam().direct) {
    EXPECT_STATUS(status, kCorruption);
  } else {
    EXPECT_OK(status);  // slow, but each read returns one byte
  }
}

TEST_P(IoQueueTest, MoreBytesThanAskedForIsAnError) {
  ASSERT_TRUE(Make([](const ReadRequest& request, std::int64_t) {
    return static_cast<std::int64_t>(request.buffer.size()) + 1;
  }));
  ReadRequest request = Request(4096, 4096, 0);
  EXPECT_STATUS(queue_->ReadAll(std::span(&request, 1)), kIoError);
}

// An error affects only its request; the others are read.
TEST_P(IoQueueTest, OneBadReadDoesNotHarmTheOthers) {
  ASSERT_TRUE(Make([](const ReadRequest& request, std::int64_t outcome) {
    return request.offset_bytes == 8192 ? -EIO : outcome;
  }));
  std::vector<ReadRequest> requests;
  for (std::size_t i = 0; i < 20; ++i) requests.push_back(Request(i * 4096, 4096, i));
  EXPECT_STATUS(queue_->ReadAll(requests), kIoError);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (i == 2) {
      EXPECT_STATUS(requests[i].status, kIoError);
    } else {
      ExpectFilled(requests[i]);
    }
  }
}

// The expected length is the one at opening, so any later truncation is noticed.
TEST_P(IoQueueTest, AFileTruncatedAfterOpeningIsCorruption) {
  for (const off_t length : {700'000L, 4096L * 170, 4096L * 170 + 512, 0L}) {
    ASSERT_EQ(truncate(path_.c_str(), length), 0);
    ReadRequest request =
        Request(static_cast<std::uint64_t>(std::max(0L, length - 20'000L)), 40'000, 0);
    const Status status = queue_->ReadAll(std::span(&request, 1));
    EXPECT_STATUS(status, kCorruption);
    EXPECT_NE(status.message().find("truncated"), std::string::npos) << status.message();
  }
}

TEST_P(IoQueueTest, FilesWithoutADescriptorAreReadAndKeepTheirOwnErrors) {
  HiddenFile hidden(std::move(file_), 5 * unit_ * 100);
  std::vector<ReadRequest> requests;
  for (std::size_t i = 0; i < 40; ++i) {
    requests.push_back({.file = &hidden,
                        .offset_bytes = i * 8192,
                        .buffer = memory_.bytes().subspan(i * 8192, 8192)});
  }
  ReadAndCheck(requests);
  hidden.Break();
  const Status status = queue_->ReadAll(requests);
  EXPECT_STATUS(status, kOutOfMemory);
  EXPECT_EQ(status.message(), "the hidden file's own words");
}

TEST_P(IoQueueTest, DestroyingAQueueWaitsForWhatIsInFlight) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 10; ++round) {
    ASSERT_TRUE(Make({}, 64));
    std::vector<ReadRequest> requests = RandomRequests(64, random);
    ASSERT_OK(queue_->Submit(requests));
    queue_.reset();
    const Hash128 before = Xxh3(memory_.bytes());
    std::this_thread::yield();
    EXPECT_EQ(Xxh3(memory_.bytes()), before);
  }
}

// Another thread may use the queue if no request is in flight.
TEST_P(IoQueueTest, AnotherThreadMayGoOn) {
  ReadRequest request = Request(4096, 10'000, 0);
  ReadAndCheck(std::span(&request, 1));
  std::thread other([&] {
    ReadRequest second = Request(123'456, 10'000, 1);
    ReadAndCheck(std::span(&second, 1));
  });
  other.join();
}

TEST(IoQueueOptionsTest, OutOfRangeIsRefused) {
  EXPECT_STATUS(IoQueue::Open({.depth = 0}), kInvalidArgument);
  EXPECT_STATUS(IoQueue::Open({.depth = 4097}), kInvalidArgument);
  EXPECT_STATUS(IoQueue::Open({.pread_threads = 0}), kInvalidArgument);
  EXPECT_STATUS(IoQueue::Open({.pread_threads = 257}), kInvalidArgument);
}

TEST(IoQueueOptionsTest, AutoAlwaysFindsAMaker) {
  const auto queue = IoQueue::Open({});
  ASSERT_OK(queue);
  EXPECT_NE((*queue)->maker(), IoMaker::kAuto);
  EXPECT_OK(IoQueue::Open({.depth = 4096}));
}

TEST(AlignedBufferTest, IsAlignedAndHasItsSize) {
  for (const std::size_t size : {1, 512, 4096, 100'001}) {
    const Result<AlignedBuffer> buffer = AlignedBuffer::Allocate(size);
    ASSERT_OK(buffer);
    EXPECT_EQ(buffer->size_bytes(), size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->bytes().data()) % 4096, 0U);
    std::fill(buffer->bytes().begin(), buffer->bytes().end(), std::byte{1});
  }
  EXPECT_EQ(AlignedBuffer::Allocate(0)->size_bytes(), 0U);
  EXPECT_STATUS(AlignedBuffer::Allocate(SIZE_MAX), kOutOfMemory);
}

}  // namespace
}  // namespace rhizome
