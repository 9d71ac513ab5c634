#include "cache/ranks/remote_rows.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <set>

#include "cache/layout/pass_lists.h"
#include "cache/ranks/fake_ranks.h"
#include "cache/ranks/rank_plan.h"
#include "cache/ranks/row_messages.h"
#include "cache/ranks/row_service.h"
#include "rhizome/feature_cache.h"
#include "rhizome/transport.h"
#include "storage/array/array_versions.h"
#include "storage/array/chunk_writer.h"
#include "storage/base/little_endian.h"
#include "testing/planted_graph.h"

// Tests of RemoteRows and RowService, by which ranks fetch rows from each other: rows and counts
// are right, requests are sent before the first wait, flipped bits, lost ranks and malformed
// requests are reported.

namespace rhizome {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::FakeRanks;
using ::testing::HasSubstr;
using testing::TempDir;

constexpr std::uint64_t kServedRows = 600;

std::vector<std::byte> Numbers(const std::vector<std::uint64_t>& rows) {
  std::vector<std::byte> bytes(rows.size() * 8);
  for (std::size_t i = 0; i < rows.size(); ++i) StoreLittle(&bytes[i * 8], rows[i]);
  return bytes;
}

void FlipByte(const Path& path, long at) {
  std::FILE* const file = std::fopen(path.c_str(), "r+b");
  ASSERT_NE(file, nullptr) << path;
  ASSERT_EQ(std::fseek(file, at, SEEK_SET), 0);
  const int byte = std::fgetc(file);
  ASSERT_EQ(std::fseek(file, at, SEEK_SET), 0);
  ASSERT_NE(std::fputc(byte ^ 1, file), EOF);
  ASSERT_EQ(std::fclose(file), 0);
}

/// A store on disk whose rows belong to ranks at random.
class RemoteRowsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempDir;
    ASSERT_OK(
        testing::WriteStore(*folder_ / "s", testing::PlantedOptions{.vertices = kServedRows}));
  }
  static void TearDownTestSuite() { delete folder_; }

  void SetUp() override {
    auto store = Store::Open(FileSystem::Posix(), *folder_ / "s", Store::Mode::kRead);
    ASSERT_OK(store);
    store_ = *std::move(store);
    rows_ = *store_->OpenArray("feat");
    sums_ = *store_->OpenArray(SidecarName("feat"));
    truth_.resize(kServedRows * row_bytes());
    ASSERT_OK(rows_->ReadRows(0, kServedRows, truth_));
  }

  /// Assigns the rows to `ranks` ranks at random, some of them to kEveryRank.
  void Deal(std::uint32_t ranks) {
    rank_of_.clear();
    for (std::uint64_t row = 0; row < kServedRows; ++row)
      rank_of_.push_back(random_() % 20 == 0 ? kEveryRank
                                             : static_cast<std::uint16_t>(random_() % ranks));
    services_.clear();
    ranks_ = std::make_unique<FakeRanks>(ranks);
    for (std::uint32_t r = 0; r < ranks; ++r) services_.push_back(*StartService(r));
  }

  const ArrayEntry& entry() const { return rows_->entry(); }
  std::size_t row_bytes() const { return entry().row_bytes(); }
  RowRanks View(std::uint32_t rank) const { return {.rank_of = rank_of_, .rank = rank}; }

  std::unique_ptr<RowReader> Disk() const { return Reader(*rows_); }
  std::unique_ptr<RowReader> Reader(const ChunkArray& array) const {
    RowReaderOptions options;
    options.staging_bytes = 512 << 10;
    return *RowReader::Open(array, *sums_, options);
  }
  Result<std::unique_ptr<RowService>> StartService(std::uint32_t rank) {
    return RowService::Start((*ranks_)[rank], Disk(), entry(), View(rank));
  }

  /// Returns random rows, with `others` only rows of other ranks.
  std::vector<std::int64_t> DrawRows(std::uint32_t rank, std::size_t count, std::mt19937_64& random,
                                     bool others = false) const {
    std::vector<std::int64_t> rows;
    while (rows.size() < count) {
      const auto row = static_cast<std::int64_t>(random() % kServedRows);
      if (!others || !View(rank).IsOwn(row)) rows.push_back(row);
    }
    return rows;
  }
  std::vector<RowTarget> TargetsOf(const std::vector<std::int64_t>& rows,
                                   std::vector<std::byte>& out) const {
    out.assign(rows.size() * row_bytes(), std::byte{0});
    std::vector<RowTarget> targets;
    for (std::size_t i = 0; i < rows.size(); ++i)
      targets.push_back({rows[i], &out[i * row_bytes()]});
    return targets;
  }
  void ExpectRows(const std::vector<std::int64_t>& rows, const std::vector<std::byte>& out) const {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto* const wanted = &truth_[static_cast<std::size_t>(rows[i]) * row_bytes()];
      ASSERT_TRUE(std::equal(wanted, wanted + row_bytes(), &out[i * row_bytes()]))
          << "row " << rows[i];
    }
  }

  /// Sends a request without RemoteRows and returns its status.
  Status AskByHand(std::uint32_t from, std::uint32_t to, const std::vector<std::byte>& request,
                   std::size_t reply_bytes) {
    std::vector<std::byte> reply(reply_bytes);
    const auto ticket = (*ranks_)[from].Ask(to, Service::kRows, request, reply);
    EXPECT_OK(ticket);
    return (*ranks_)[from].Wait(*ticket);
  }

  static inline TempDir* folder_ = nullptr;
  std::unique_ptr<Store> store_;
  std::unique_ptr<ChunkArray> rows_, sums_;
  std::vector<std::byte> truth_;  // all rows, read from disk
  std::mt19937_64 random_{testing::TestSeed()};
  std::vector<std::uint16_t> rank_of_;
  std::unique_ptr<FakeRanks> ranks_;
  std::vector<std::unique_ptr<RowService>> services_;
};

TEST_F(RemoteRowsTest, RowsAreThoseOfTheArrayForAnyNumberOfRanksAndAreCounted) {
  for (const std::uint32_t ranks : {1, 2, 3, 4, 8}) {
    SCOPED_TRACE(ranks);
    Deal(ranks);
    std::vector<RemoteRowsStats> asked(ranks);
    const std::uint64_t seed = random_();
    testing::OnEachRank(ranks, [&](std::uint32_t rank) {
      std::mt19937_64 random(seed + rank);
      RemoteRows remote((*ranks_)[rank], entry(), View(rank));
      RowsByHome fetcher(Disk(), remote, View(rank));
      RemoteRowsStats wanted;
      wanted.rows_of.assign(ranks, 0);
      wanted.requests_to.assign(ranks, 0);
      for (int read = 0; read < 6; ++read) {
        const auto rows = DrawRows(rank, random() % 300, random);
        std::vector<std::byte> out;
        std::vector<RowTarget> targets = TargetsOf(rows, out);
        EXPECT_OK(fetcher.Read(targets));
        ExpectRows(rows, out);
        std::set<std::int64_t> distinct;
        std::set<std::uint16_t> owners;
        for (const std::int64_t row : rows) {
          if (View(rank).IsOwn(row) || !distinct.insert(row).second) continue;
          const std::uint16_t owner = rank_of_[static_cast<std::size_t>(row)];
          ++wanted.rows_of[owner];
          ++wanted.rows;
          if (!owners.insert(owner).second) continue;
          ++wanted.requests_to[owner];
          ++wanted.requests;
        }
      }
      asked[rank] = remote.stats();
      EXPECT_EQ(asked[rank].rows_of, wanted.rows_of);
      EXPECT_EQ(asked[rank].requests_to, wanted.requests_to);
      EXPECT_EQ(asked[rank].rows, wanted.rows);
      EXPECT_EQ(asked[rank].requests, wanted.requests);
      EXPECT_EQ(asked[rank].bytes_out, wanted.requests * kMessageHeaderBytes + wanted.rows * 8);
      EXPECT_EQ(asked[rank].bytes_in,
                wanted.requests * kMessageHeaderBytes + wanted.rows * (row_bytes() + 4));
    });
    for (std::uint32_t r = 0; r < ranks; ++r) {
      RemoteRowsStats of_others;
      for (const RemoteRowsStats& one : asked) {
        of_others.rows += one.rows_of[r];
        of_others.requests += one.requests_to[r];
      }
      const RowServiceStats served = services_[r]->stats();
      EXPECT_EQ(served.rows, of_others.rows);
      EXPECT_EQ(served.requests, of_others.requests);
      EXPECT_EQ(served.bytes_in, of_others.requests * kMessageHeaderBytes + of_others.rows * 8);
      EXPECT_EQ(served.bytes_out,
                of_others.requests * kMessageHeaderBytes + of_others.rows * (row_bytes() + 4));
      EXPECT_EQ(served.refused, 0U);
      EXPECT_EQ(served.processor_seconds > 0, served.requests > 0);
    }
  }
}

TEST_F(RemoteRowsTest, AllRequestsAreSentBeforeTheFirstWait) {
  Deal(4);
  RemoteRows remote((*ranks_)[1], entry(), View(1));
  RowsByHome fetcher(Disk(), remote, View(1));
  std::vector<std::int64_t> rows(kServedRows);
  std::iota(rows.begin(), rows.end(), 0);
  std::shuffle(rows.begin(), rows.end(), random_);
  std::vector<std::byte> out;
  std::vector<RowTarget> targets = TargetsOf(rows, out);
  ASSERT_OK(fetcher.Read(targets));
  ExpectRows(rows, out);
  EXPECT_THAT(ranks_->calls(),
              ElementsAre("ask 0", "ask 2", "ask 3", "wait 0", "wait 2", "wait 3"));
  EXPECT_EQ(fetcher.stats().rows + remote.stats().rows, kServedRows);
}

/// The owner has no disk, since only the numbers of rows matter.
TEST(RemoteRowsRequestTest, LongRequestsAreDivided) {
  std::mt19937_64 random(testing::TestSeed());
  ArrayEntry entry;
  entry.name = "x";
  entry.dim = 2;
  entry.rows = 200000;
  entry.array_id = 9;
  FakeRanks ranks(2);
  std::vector<std::uint64_t> sizes;
  ASSERT_OK(ranks[1].Serve(Service::kRows, [&](std::uint32_t, std::span<const std::byte> request,
                                               std::vector<std::byte>& reply) {
    const std::size_t rows = request.size() / 8;
    sizes.push_back(rows);
    reply.resize(rows * 12);
    for (std::size_t i = 0; i < rows; ++i) {
      const auto row = LoadLittle<std::uint64_t>(&request[i * 8]);
      StoreLittle(&reply[i * 8], ~row);
      StoreLittle(&reply[rows * 8 + i * 4], RowCrc(9, row, std::span(reply).subspan(i * 8, 8)));
    }
    return Status::Ok();
  }));
  const std::vector<std::uint16_t> rank_of(entry.rows, 1);
  RemoteRows remote(ranks[0], entry, {.rank_of = rank_of, .rank = 0});
  ASSERT_EQ(RequestRows(8), 32768U);
  for (const std::uint64_t count : {32768, 32769, 70000}) {
    sizes.clear();
    std::vector<std::int64_t> rows(entry.rows);
    std::iota(rows.begin(), rows.end(), 0);
    std::shuffle(rows.begin(), rows.end(), random);
    rows.resize(count);
    std::vector<std::uint64_t> out(count);
    std::vector<RowTarget> targets;
    for (std::size_t i = 0; i < count; ++i)
      targets.push_back({rows[i], reinterpret_cast<std::byte*>(&out[i])});
    targets.push_back(targets[random() % count]);  // a row that is wanted twice is sent once
    ASSERT_OK(remote.Send(targets));
    ASSERT_OK(remote.Finish());
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(out[i], ~static_cast<std::uint64_t>(rows[i]));
    std::vector<std::uint64_t> wanted(count / 32768, 32768);
    if (count % 32768 != 0) wanted.push_back(count % 32768);
    EXPECT_EQ(sizes, wanted);
  }
  EXPECT_EQ(remote.stats().requests, 1U + 2U + 3U);
  EXPECT_EQ(RequestRows(1 << 16), 15U);
  EXPECT_EQ(RequestRows(std::uint64_t{1} << 30), 1U);
}

TEST_F(RemoteRowsTest, AnyFlippedBitOfAReplyIsNoticed) {
  Deal(3);
  RemoteRows remote((*ranks_)[0], entry(), View(0));
  for (int round = 0; round < 60; ++round) {
    const auto rows = DrawRows(0, 1 + random_() % 20, random_, true);
    const std::uint32_t liar = 1 + static_cast<std::uint32_t>(random_() % 2);
    bool lied = false;
    ranks_->garble = [&](std::uint32_t owner, std::vector<std::byte>& reply) {
      if (owner != liar) return;
      lied = true;
      reply[random_() % reply.size()] ^= std::byte{1} << random_() % 8;
    };
    std::vector<std::byte> out;
    std::vector<RowTarget> targets = TargetsOf(rows, out);
    ASSERT_OK(remote.Send(targets));
    const Status status = remote.Finish();
    EXPECT_EQ(ranks_->pending(), 0U);
    if (!lied) {
      ASSERT_OK(status);
      ExpectRows(rows, out);
      continue;
    }
    EXPECT_STATUS(status, kCorruption);
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("array 'feat', row "),
                      HasSubstr("rank " + std::to_string(liar) + " (host" + std::to_string(liar))));
  }
}

TEST_F(RemoteRowsTest, AnOwnerThatCannotReadIsNamedByTheAsker) {
  Deal(2);
  const Path copy = *folder_ / "damaged";
  std::filesystem::copy(*folder_ / "s", copy, std::filesystem::copy_options::recursive);
  const auto store = *Store::Open(FileSystem::Posix(), copy, Store::Mode::kRead);
  const auto array = *store->OpenArray("feat");
  std::int64_t row = 0;
  while (rank_of_[static_cast<std::size_t>(row)] != 1) ++row;
  const std::uint64_t chunk_rows = entry().chunk_rows;
  const Path file = array->root() / ChunkPath("feat", static_cast<std::uint64_t>(row) / chunk_rows);
  const auto read = [&] {
    services_.clear();
    services_.push_back(*RowService::Start((*ranks_)[1], Reader(*array), entry(), View(1)));
    RemoteRows remote((*ranks_)[0], entry(), View(0));
    RowsByHome fetcher(Disk(), remote, View(0));
    std::vector<std::byte> out(row_bytes());
    std::vector<RowTarget> targets{{row, out.data()}};
    Status status = fetcher.Read(targets);
    EXPECT_THAT(status.message(), HasSubstr("rank 1 (host1)"));
    EXPECT_EQ(services_[0]->stats().refused, 1U);
    EXPECT_EQ(services_[0]->stats().rows, 0U);
    return status;
  };
  const long at = static_cast<long>(static_cast<std::uint64_t>(row) % chunk_rows * row_bytes());
  ASSERT_NO_FATAL_FAILURE(FlipByte(file, at));
  EXPECT_STATUS(read(), kCorruption);
  std::filesystem::resize_file(file, static_cast<std::uintmax_t>(at));
  EXPECT_FALSE(read().ok());
}

TEST_F(RemoteRowsTest, ALostRankIsAnErrorAndNothingStaysUnderWay) {
  for (const bool at_ask : {false, true}) {
    SCOPED_TRACE(at_ask);
    Deal(4);
    FeatureCacheOptions options;
    options.capacity_bytes = 0;
    options.reader.staging_bytes = 512 << 10;
    std::unique_ptr<RemoteRows> remote;
    options.fetcher = [&](std::unique_ptr<RowReader> local,
                          const ArrayEntry& array) -> Result<std::unique_ptr<RowFetcher>> {
      remote = std::make_unique<RemoteRows>((*ranks_)[0], array, View(0));
      return std::make_unique<RowsByHome>(std::move(local), *remote, View(0));
    };
    auto cache = FeatureCache::Open(*store_, "feat", options);
    ASSERT_OK(cache);
    std::vector<Row> rows(kServedRows);
    std::iota(rows.begin(), rows.end(), 0);
    std::vector<std::byte> out(kServedRows * row_bytes());
    ASSERT_OK((*cache)->Gather(rows, out));
    EXPECT_EQ(out, truth_);
    at_ask ? ranks_->RefuseToAsk(2) : ranks_->Lose(2);
    const Status status = (*cache)->Gather(rows, out);
    EXPECT_STATUS(status, kIoError);
    EXPECT_THAT(status.message(), HasSubstr("rank 2 (host2)"));
    EXPECT_EQ(ranks_->pending(), 0U);
    *cache = nullptr;
  }
}

TEST_F(RemoteRowsTest, WhatIsCountedIsWhatATransportSendsUntilARankDies) {
  Deal(3);
  services_.clear();
  const auto ranks = *LocalRanks::Create(3);
  for (std::uint32_t r = 0; r < 3; ++r)
    services_.push_back(*RowService::Start((*ranks)[r], Disk(), entry(), View(r)));
  const std::uint64_t seed = random_();
  testing::OnEachRank(3, [&](std::uint32_t rank) {
    std::mt19937_64 random(seed + rank);
    RemoteRows remote((*ranks)[rank], entry(), View(rank));
    RowsByHome fetcher(Disk(), remote, View(rank));
    for (int read = 0; read < 4; ++read) {
      const auto rows = DrawRows(rank, 1 + random() % 200, random);
      std::vector<std::byte> out;
      std::vector<RowTarget> targets = TargetsOf(rows, out);
      EXPECT_OK(fetcher.Read(targets));
      ExpectRows(rows, out);
    }
    const RemoteRowsStats counted = remote.stats();
    const MessageStats asked =
        (*ranks)[rank].stats().asked[static_cast<std::size_t>(Service::kRows)];
    EXPECT_EQ(asked.messages_out, counted.requests);
    EXPECT_EQ(asked.bytes_out, counted.bytes_out);
    EXPECT_EQ(asked.messages_in, counted.requests);
    EXPECT_EQ(asked.bytes_in, counted.bytes_in);
  });
  for (std::uint32_t r = 0; r < 3; ++r) {
    const MessageStats served =
        (*ranks)[r].stats().served[static_cast<std::size_t>(Service::kRows)];
    EXPECT_EQ(served.bytes_in, services_[r]->stats().bytes_in);
    EXPECT_EQ(served.bytes_out, services_[r]->stats().bytes_out);
  }
  ranks->Fault({.kind = LocalFault::Kind::kDie, .rank = 2});
  RemoteRows remote((*ranks)[0], entry(), View(0));
  std::vector<std::byte> out;
  const auto rows = DrawRows(0, 100, random_, true);
  std::vector<RowTarget> targets = TargetsOf(rows, out);
  Status status = remote.Send(targets);
  if (status.ok()) status = remote.Finish();
  EXPECT_STATUS(status, kIoError);
  EXPECT_THAT(status.message(), HasSubstr("rank 2"));
  services_.clear();
}

TEST_F(RemoteRowsTest, AFetcherThatCannotBeMadeIsAnErrorOfOpening) {
  FeatureCacheOptions options;
  options.fetcher = [](std::unique_ptr<RowReader>,
                       const ArrayEntry&) -> Result<std::unique_ptr<RowFetcher>> {
    return Fail(Status::Busy("not now"));
  };
  EXPECT_STATUS(FeatureCache::Open(*store_, "feat", options), kBusy);
}

// A rank needs the checksums of its own rows only, so it does not load other checksums.
TEST_F(RemoteRowsTest, ChecksumsOfRowsThatAreNotReadHereAreNotLoaded) {
  const Path copy = *folder_ / "damaged sums";
  std::filesystem::copy(*folder_ / "s", copy, std::filesystem::copy_options::recursive);
  const auto store = *Store::Open(FileSystem::Posix(), copy, Store::Mode::kRead);
  const std::string sidecar = SidecarName("feat");
  const Path root = (*store->OpenArray(sidecar))->root();
  ASSERT_NO_FATAL_FAILURE(FlipByte(root / ChunkPath(sidecar, 0), 9));
  FeatureCacheOptions options;
  options.capacity_bytes = 0;
  EXPECT_STATUS(FeatureCache::Open(*store, "feat", options), kCorruption);
  Deal(2);
  std::unique_ptr<RemoteRows> remote;
  options.fetcher = [&](std::unique_ptr<RowReader> local,
                        const ArrayEntry& array) -> Result<std::unique_ptr<RowFetcher>> {
    remote = std::make_unique<RemoteRows>((*ranks_)[0], array, View(0));
    return std::make_unique<RowsByHome>(std::move(local), *remote, View(0));
  };
  const auto cache = FeatureCache::Open(*store, "feat", options);
  ASSERT_OK(cache);
  const auto gather = [&](const std::vector<std::int64_t>& rows) {
    std::vector<std::byte> out(rows.size() * row_bytes());
    Status status = (*cache)->Gather(rows, out);
    if (status.ok()) ExpectRows(rows, out);
    return status;
  };
  std::vector<std::int64_t> own, others;
  for (std::int64_t row = 0; row < 60; ++row) (View(0).IsOwn(row) ? own : others).push_back(row);
  EXPECT_OK(gather(others));
  EXPECT_STATUS(gather(own), kCorruption);
}

TEST_F(RemoteRowsTest, RowsOutOfRangeAndRowsOfTheWrongRankAreRefused) {
  Deal(2);
  RemoteRows remote((*ranks_)[0], entry(), View(0));
  RowsByHome fetcher(Disk(), remote, View(0));
  std::vector<std::byte> out(row_bytes());
  for (const std::int64_t row : {std::int64_t{-1}, static_cast<std::int64_t>(kServedRows)}) {
    std::vector<RowTarget> targets{{row, out.data()}};
    EXPECT_STATUS(fetcher.Read(targets), kInvalidArgument);
  }
  std::int64_t own = 0;
  while (!View(0).IsOwn(own)) ++own;
  std::vector<RowTarget> targets{{own, out.data()}};
  EXPECT_STATUS(remote.Send(targets), kInvalidArgument);
  EXPECT_EQ(ranks_->calls(), std::vector<std::string>());
}

TEST_F(RemoteRowsTest, MalformedRequestsAreRefusedByTheOwner) {
  Deal(2);
  std::vector<std::uint64_t> own;
  std::optional<std::uint64_t> other, all;
  for (std::uint64_t row = 0; row < kServedRows; ++row) {
    if (rank_of_[row] == 1) own.push_back(row);
    if (rank_of_[row] == 0) other = row;
    if (rank_of_[row] == kEveryRank) all = row;
  }
  const std::size_t one = row_bytes() + 4;
  ASSERT_OK(AskByHand(0, 1, Numbers({own[0], own[1]}), 2 * one));
  std::vector<std::byte> torn = Numbers({own[0]});
  torn.pop_back();
  const std::vector<std::vector<std::byte>> bad = {
      {},
      torn,
      Numbers({own[1], own[0]}),
      Numbers({own[0], own[0]}),
      Numbers({own[0], *other}),
      Numbers({*all}),
      Numbers({kServedRows}),
      Numbers({~std::uint64_t{0}}),
      Numbers(std::vector<std::uint64_t>(RequestRows(row_bytes()) + 1, own[0]))};
  for (std::size_t i = 0; i < bad.size(); ++i) {
    SCOPED_TRACE(i);
    const Status status = AskByHand(0, 1, bad[i], one);
    EXPECT_STATUS(status, kInvalidArgument);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("array 'feat'"), HasSubstr("rank 0 requests")));
  }
  EXPECT_EQ(services_[1]->stats().refused, bad.size());
  EXPECT_EQ(services_[1]->stats().rows, 2U);
}

}  // namespace
}  // namespace rhizome
