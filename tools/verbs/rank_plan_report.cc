#include "tools/verbs/rank_plan_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "rhizome/transport.h"
#include "tools/cli/text.h"

// Parses --link, and reports a plan over ranks: AddRankPlan writes the totals and the share of each
// rank as JSON, DescribeRankPlan formats that JSON as tables.

namespace rhizome {
namespace {

/// Parses a positive number at the beginning of `text` and removes it from there. Returns nullopt
/// if there is none.
std::optional<double> TakeNumber(std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !(value > 0) || !(value < 1e15)) return std::nullopt;
  text = end;
  return value;
}

std::optional<double> ParseBits(std::string text) {
  const std::optional<double> number = TakeNumber(text);
  if (!number) return std::nullopt;
  if (text.empty()) return number;
  const double units[] = {1e3, 1e6, 1e9, 1e12};
  const std::size_t at = std::string("KMGT").find(text);
  if (text.size() != 1 || at == std::string::npos) return std::nullopt;
  return *number * units[at];
}

std::optional<double> ParseLatency(std::string text) {
  if (text == "0") return 0.0;
  const std::optional<double> number = TakeNumber(text);
  if (!number) return std::nullopt;
  if (text == "us") return *number * 1e-6;
  if (text == "ms") return *number * 1e-3;
  if (text == "s") return *number;
  return std::nullopt;
}

Json ShareJson(std::size_t rank, const RankShare& one) {
  Json json = RankCountsJson(rank, one);
  json["memory_bytes"] = one.memory_bytes();
  json["memory"] = {{"pool_bytes", one.pool_bytes},
                    {"topology_bytes", one.topology_bytes},
                    {"table_bytes", one.table_bytes},
                    {"schedule_bytes", one.schedule_bytes}};
  json["seconds"] = {{"disk", one.disk_seconds},
                     {"link_in", one.in_seconds},
                     {"link_out", one.out_seconds},
                     {"compute", one.compute_seconds}};
  return json;
}

/// Returns the largest value of `figure` over the mean of all ranks; 1 if all are 0.
double Imbalance(const Json& shares, const char* figure) {
  double sum = 0, most = 0;
  for (const Json& one : shares) {
    const double value = one[figure].get<double>();
    sum += value;
    most = std::max(most, value);
  }
  return sum == 0 ? 1 : most * static_cast<double>(shares.size()) / sum;
}

std::uint64_t Sum(const Json& shares, const char* figure) {
  std::uint64_t sum = 0;
  for (const Json& one : shares) sum += one[figure].get<std::uint64_t>();
  return sum;
}

double ShareOf(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string DescribeOne(const Json& plan) {
  const Json& shares = plan["shares"];
  TextTable table({0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  table.Add({"rank", "rows", "seeds", "rows requested", "remote", "from disk", "from ranks",
             "requests", "bytes in", "memory"});
  for (const Json& one : shares) {
    const auto wanted = one["rows_requested"].get<std::uint64_t>();
    table.Add({std::to_string(one["rank"].get<int>()), WithCommas(one["rows"]),
               WithCommas(one["training_vertices"]), WithCommas(wanted),
               Percent(ShareOf(one["remote_rows_requested"], wanted)),
               WithCommas(one["disk_rows_fetched"]), WithCommas(one["remote_rows_fetched"]),
               WithCommas(one["requests"]), HumanBytes(one["bytes_in"]),
               HumanBytes(one["memory_bytes"])});
  }
  std::string text = fmt::format("\n{} ranks\n", plan["ranks"].get<int>()) + table.ToString();
  const Json& imbalance = plan["imbalance"];
  text += fmt::format(
      "remote rows: {} requested, {} fetched; largest rank relative to the mean: edges {:.2f}, "
      "rows requested {:.2f}, remote rows {:.2f}, bytes in {:.2f}\n",
      WithCommas(plan["remote_rows_requested"]), WithCommas(plan["remote_rows_fetched"]),
      imbalance["edges"].get<double>(), imbalance["rows_requested"].get<double>(),
      imbalance["remote_rows_fetched"].get<double>(), imbalance["bytes_in"].get<double>());
  return text + fmt::format("estimated time: {:.3g} s\n", plan["seconds"].get<double>());
}

}  // namespace

std::optional<LinkModel> ParseLink(const std::string& text) {
  LinkModel link;
  const std::size_t comma = text.find(',');
  const std::optional<double> bits = ParseBits(text.substr(0, comma));
  if (!bits) return std::nullopt;
  link.bits_per_second = *bits;
  if (comma == std::string::npos) return link;
  const std::optional<double> latency = ParseLatency(text.substr(comma + 1));
  if (!latency) return std::nullopt;
  link.latency_seconds = *latency;
  return link;
}

Result<LinkModel> LinkOf(const std::string& flag) {
  if (const std::optional<LinkModel> link = ParseLink(flag)) return *link;
  return Fail(Status::InvalidArgument(fmt::format(
      "--link '{}': expected bits per second, optionally with a latency, such as 10G,50us", flag)));
}

Json RankCountsJson(std::size_t rank, const RankCounts& one) {
  return {{"rank", rank},
          {"homes", {one.first_home, one.first_home + one.homes}},
          {"rows", one.rows},
          {"training_vertices", one.training_vertices},
          {"minibatches", one.minibatches},
          {"edges", one.edges},
          {"rows_requested", one.rows_requested},
          {"remote_rows_requested", one.remote_rows_requested},
          {"disk_rows_fetched", one.disk_rows},
          {"remote_rows_fetched", one.remote_rows},
          {"served_rows", one.served_rows},
          {"requests", one.requests},
          {"served_requests", one.served_requests},
          {"bytes_in", one.bytes_in},
          {"bytes_out", one.bytes_out}};
}

void AddRankPlan(const RankPlanReport& report, const RankPlanOptions& options, Json& fields) {
  fields["homes"] = report.homes;
  fields["homes_by"] = report.homes_by;
  fields["vertices"] = report.vertices;
  fields["training_vertices"] = report.training_vertices;
  fields["row_bytes"] = report.row_bytes;
  fields["epochs"] = options.epochs;
  fields["steps"] = report.steps;
  fields["valid_steps"] = report.valid_steps;
  fields["batch_size"] = options.minibatch.batch_size;
  fields["superbatch"] = options.minibatch.feed.superbatch;
  fields["prior"] = PriorName(options.minibatch.feed.prior);
  fields["prefetch"] = PrefetchName(options.minibatch.ranks->prefetch.policy);
  fields["model"] = {{"link_bits_per_second", options.minibatch.ranks->link.bits_per_second},
                     {"link_latency_seconds", options.minibatch.ranks->link.latency_seconds},
                     {"disk_seconds_per_read", options.disk.seconds_per_read},
                     {"disk_bytes_per_second", options.disk.bytes_per_second},
                     {"read_seconds", options.read_seconds ? Json(*options.read_seconds) : Json()},
                     {"compute_seconds", options.compute_seconds},
                     {"gradient_bytes", options.gradient_bytes},
                     {"processors", options.processors},
                     {"row_seconds", options.row_seconds},
                     {"own_seconds", options.own_seconds},
                     {"message_header_bytes", kMessageHeaderBytes},
                     {"request_row_bytes", kRequestRowBytes},
                     {"reply_row_bytes", report.row_bytes + kReplyChecksumBytes}};
  Json plans = Json::array();
  for (const RankPlan& plan : report.plans) {
    Json shares = Json::array();
    for (std::size_t r = 0; r < plan.shares.size(); ++r)
      shares.push_back(ShareJson(r, plan.shares[r]));
    Json imbalance = Json::object();
    for (const char* const figure :
         {"rows", "training_vertices", "edges", "rows_requested", "remote_rows_fetched",
          "disk_rows_fetched", "bytes_in", "bytes_out", "memory_bytes"})
      imbalance[figure] = Imbalance(shares, figure);
    plans.push_back({{"ranks", plan.shares.size()},
                     {"rows_requested", Sum(shares, "rows_requested")},
                     {"remote_rows_requested", Sum(shares, "remote_rows_requested")},
                     {"disk_rows_fetched", Sum(shares, "disk_rows_fetched")},
                     {"remote_rows_fetched", Sum(shares, "remote_rows_fetched")},
                     {"requests", Sum(shares, "requests")},
                     {"bytes_in", Sum(shares, "bytes_in")},
                     {"seconds", plan.seconds},
                     {"imbalance", std::move(imbalance)},
                     {"shares", std::move(shares)}});
  }
  fields["plans"] = std::move(plans);
}

std::string DescribeRankPlan(const Json& f) {
  const std::string by = f["homes_by"];
  std::string text = fmt::format(
      "plan: {} epochs of {} steps over {} training vertices, and {}; {} {}, "
      "with {} seeds each per step on average\n",
      f["epochs"].get<std::uint32_t>(), f["steps"].get<std::uint64_t>(),
      WithCommas(f["training_vertices"]), Plural(f["valid_steps"], "evaluation step"),
      f["homes"].get<std::uint32_t>(),
      by == "partitions"
          ? "partitions instead of homes (ingest --homes edgecut has far fewer remote rows)"
          : "homes by " + by,
      f["batch_size"].get<std::uint64_t>());
  for (const Json& plan : f["plans"]) text += DescribeOne(plan);
  const Json& model = f["model"];
  return text + fmt::format(
                    "\nrows, requests and bytes are counted in a replay with superbatches of {} "
                    "steps, prior {} and prefetch {}; times are estimates for a link of {:.3g} "
                    "Gbit/s and {:.3g} us, and a disk of {:.3g} us per read, from which owners "
                    "read the rows that they serve\n",
                    f["superbatch"].get<std::uint32_t>(), f["prior"].get<std::string>(),
                    f["prefetch"].get<std::string>(),
                    model["link_bits_per_second"].get<double>() / 1e9,
                    model["link_latency_seconds"].get<double>() * 1e6,
                    model["disk_seconds_per_read"].get<double>() * 1e6);
}

}  // namespace rhizome
