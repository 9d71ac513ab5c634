#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/graph.h"
#include "rhizome/ingest.h"
#include "storage/array/array_facts.h"
#include "testing/compressed.h"
#include "testing/store_contents.h"
#include "testing/test_store.h"
#include "testing/testing.h"

// Types of the columns of text files: inferred or given, with nulls, in memory and spilled, for
// edges and for vertices.

namespace rhizome {
namespace {

/// Returns the values of an attribute with one column, by the source of the edge.
template <typename T>
std::vector<T> EdgeRows(const testing::OpenGraph& open, const std::string& name) {
  std::vector<T> values;
  for (const auto& [edge, row] : testing::EdgeRowsOf<T>(open, name)) values.push_back(row[0]);
  return values;
}

class ColumnTypesTest : public ::testing::Test {
 protected:
  Path Write(const std::string& name, std::string_view text) {
    testing::WriteInput(dir_ / name, text);
    return dir_ / name;
  }
  Result<IngestReport> Run(const IngestOptions& options) {
    return Ingest(FileSystem::Posix(), store_path_, options, control_);
  }
  void ExpectRefused(const IngestOptions& options, const std::vector<std::string>& parts) {
    const auto report = Run(options);
    ASSERT_FALSE(report) << fmt::format("{}", fmt::join(parts, "; "));
    EXPECT_EQ(report.error().code(), StatusCode::kInvalidArgument) << report.error().ToString();
    for (const std::string& part : parts)
      EXPECT_NE(report.error().message().find(part), std::string::npos)
          << report.error().message() << " lacks " << part;
    EXPECT_FALSE(std::filesystem::exists(store_path_));
  }

  testing::TempDir dir_;
  Path store_path_ = dir_ / "graph.rz";
  JobControl control_;
};

// Edges and vertices have the same columns: each of a type of its own, some with nulls. Vertex 4 is
// not in the nodes file.
TEST_F(ColumnTypesTest, ColumnsKeepTheirTypesAndNulls) {
  const std::vector<std::string> names = {"whole", "nulls", "short", "long",
                                          "flag",  "flags", "when"};
  const std::vector<std::string> rows = {
      "1600000001\t\t0.1\t0.1\ttrue\t\t2024-05-01",
      "-9223372036854775808\t7\t\t1e-180\tfalse\ttrue\t2024-05-01T02:00:00+02:00",
      "5\tNA\tinf\t\ttrue\tfalse\t1970-01-01 00:00:00.000001",
      "6\t-1\t-2\t0.123456789\tfalse\tNA\t1970-01-01"};
  std::string edges;
  std::string nodes;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    edges += fmt::format("{}\t4\t{}\n", i, rows[i]);
    nodes += fmt::format("{}\t{}\n", i, rows[i]);
  }
  IngestOptions options{.edges = {Write("e.tsv", edges)}, .nodes = Write("n.tsv", nodes)};
  options.columns = {"src", "dst"};
  options.node_columns = {"id"};
  options.columns.insert(options.columns.end(), names.begin(), names.end());
  for (const std::string& name : names) options.node_columns.push_back("n_" + name);
  constexpr std::int64_t kDay = 1'714'521'600'000'000;
  for (const auto spill : {IngestOptions::Spill::kNever, IngestOptions::Spill::kAlways}) {
    options.spill = spill;
    ASSERT_OK(Run(options));
    const auto open = testing::OpenStoreGraph(store_path_);
    ASSERT_OK(open);
    using Integers = std::vector<std::int64_t>;
    const auto edge = [&](const std::string& name) { return EdgeRows<std::int64_t>(*open, name); };
    EXPECT_EQ(edge("whole"), (Integers{1600000001, INT64_MIN, 5, 6}));
    EXPECT_EQ(edge("nulls"), (Integers{INT64_MIN, 7, INT64_MIN, -1}));
    EXPECT_EQ(EdgeRows<float>(*open, "short")[0], 0.1F);
    EXPECT_TRUE(std::isnan(EdgeRows<float>(*open, "short")[1]));
    EXPECT_EQ(EdgeRows<float>(*open, "short")[2], std::numeric_limits<float>::infinity());
    EXPECT_EQ(EdgeRows<double>(*open, "long")[0], 0.1);
    EXPECT_EQ(EdgeRows<double>(*open, "long")[1], 1e-180);
    EXPECT_TRUE(std::isnan(EdgeRows<double>(*open, "long")[2]));
    EXPECT_EQ(EdgeRows<double>(*open, "long")[3], 0.123456789);
    EXPECT_EQ(edge("flag"), (Integers{1, 0, 1, 0}));
    EXPECT_EQ(edge("flags"), (Integers{-1, 1, 0, -1}));
    EXPECT_EQ(edge("when"), (Integers{kDay, kDay, 1, 0}));
    EXPECT_EQ(testing::ValuesByVertex<std::int64_t>(*open, "n_whole"),
              (Integers{1600000001, INT64_MIN, 5, 6, -1}));
    EXPECT_EQ(testing::ValuesByVertex<std::int64_t>(*open, "n_nulls"),
              (Integers{INT64_MIN, 7, INT64_MIN, -1, -1}));
    EXPECT_EQ(testing::ValuesByVertex<double>(*open, "n_long")[3], 0.123456789);
    EXPECT_EQ(testing::ValuesByVertex<std::uint8_t>(*open, "n_flag"),
              (std::vector<std::uint8_t>{1, 0, 1, 0, 0}));
    EXPECT_EQ(testing::ValuesByVertex<std::int8_t>(*open, "n_flags"),
              (std::vector<std::int8_t>{-1, 1, 0, -1, -1}));
    EXPECT_EQ(testing::ValuesByVertex<std::int64_t>(*open, "n_when"),
              (Integers{kDay, kDay, 1, 0, -1}));
    const auto facts = [&](const std::string& name) {
      const ArrayEntry& entry = *open->store->manifest().FindArray(name);
      return std::pair(NullOf(entry.attributes), std::string(TypeOf(entry.attributes)));
    };
    using Facts = std::pair<std::optional<std::int64_t>, std::string>;
    for (const std::string& prefix : {std::string("n_"), std::string()}) {
      const std::string end = prefix.empty() ? ".p0000" : "";
      EXPECT_EQ(facts(prefix + "whole" + end), Facts(std::nullopt, ""));
      EXPECT_EQ(facts(prefix + "nulls" + end), Facts(INT64_MIN, ""));
      EXPECT_EQ(facts(prefix + "long" + end), Facts(std::nullopt, ""));
      EXPECT_EQ(facts(prefix + "flags" + end), Facts(-1, "bool"));
      EXPECT_EQ(facts(prefix + "when" + end), Facts(std::nullopt, "timestamp"));
    }
    std::filesystem::remove_all(store_path_);
  }
}

TEST_F(ColumnTypesTest, GivenTypesOfColumnsHold) {
  IngestOptions options{.edges = {Write("e.tsv", "0\t1\t3.0\n1\t2\t\n")},
                        .nodes = Write("n.tsv", "0\t7\t1\n1\t-8\t0\n2\t9\t1\n"),
                        .columns = {"src", "dst", "amount"},
                        .node_columns = {"id", "small", "flag"},
                        .types = {{"amount", "int64"}, {"small", "int16"}, {"flag", "bool"}}};
  ASSERT_OK(Run(options));
  const auto open = testing::OpenStoreGraph(store_path_);
  ASSERT_OK(open);
  EXPECT_EQ(EdgeRows<std::int64_t>(*open, "amount"), (std::vector<std::int64_t>{3, INT64_MIN}));
  EXPECT_EQ(testing::ValuesByVertex<std::int16_t>(*open, "small"),
            (std::vector<std::int16_t>{7, -8, 9}));
  EXPECT_EQ(testing::ValuesByVertex<std::uint8_t>(*open, "flag"),
            (std::vector<std::uint8_t>{1, 0, 1}));
  EXPECT_EQ(open->store->manifest().FindArray("flag")->dtype, DataType::kBool);
  store_path_ = dir_ / "refused.rz";
  const auto refuse = [&](std::map<std::string, std::string> types,
                          const std::vector<std::string>& parts) {
    options.types = std::move(types);
    ExpectRefused(options, parts);
  };
  refuse({{"small", "int3"}}, {"`types`", "'int3'", "small", "int16"});
  refuse({{"other", "int8"}}, {"`types`", "'other'", "small, flag, amount"});
  refuse({{"id", "int64"}}, {"`types`", "'id'"});
  refuse({{"small", "uint8"}}, {"n.tsv:2", "'-8'", "small", "uint8"});
  refuse({{"amount", "timestamp"}}, {"e.tsv:1", "'3.0'", "amount", "timestamp"});
  options.columns.back() = "time";
  refuse({{"time", "float32"}}, {"'time'", "float32", "timestamp"});
  refuse({}, {"e.tsv:1", "the time '3.0'"});
}

}  // namespace
}  // namespace rhizome
