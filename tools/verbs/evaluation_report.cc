#include "tools/verbs/evaluation_report.h"

#include <fmt/format.h>

#include "cache/job/process_memory.h"
#include "tools/cli/text.h"

namespace rhizome {
namespace {

constexpr const char* kDefinition =
    "rank = 1 + better + equal / 2 (optimistic: 1 + better; pessimistic: 1 + better + equal), "
    "where "
    "better and equal count the other candidates with a better and an equal score; both ends of "
    "each test edge are ranked";

Json FiguresJson(const LinkFigures& figures) {
  return {
      {"mrr", figures.mrr},
      {"hits", {{"1", figures.hits_at_1}, {"3", figures.hits_at_3}, {"10", figures.hits_at_10}}},
      {"mean_rank", figures.mean_rank}};
}

Json RanksJson(const LinkRanks& ranks) {
  Json fields = FiguresJson(ranks.realistic);
  fields["ranks"] = ranks.ranks;
  fields["optimistic"] = FiguresJson(ranks.optimistic);
  fields["pessimistic"] = FiguresJson(ranks.pessimistic);
  return fields;
}

Json NegativesJson(const NegativeFigures& figures) {
  Json fields = {{"negatives", figures.negatives},
                 {"roc_auc", figures.roc_auc},
                 {"average_precision", figures.average_precision}};
  for (const auto& [k, share] : figures.hits) fields[fmt::format("ogb_hits@{}", k)] = share;
  return fields;
}

std::string Figure(const Json& value) { return fmt::format("{:.4f}", value.get<double>()); }

void AddRow(TextTable& table, const std::string& name, const Json& ranks) {
  const Json& hits = ranks["hits"];
  table.Add({name, WithCommas(ranks["ranks"]), Figure(ranks["mrr"]), Figure(hits["1"]),
             Figure(hits["3"]), Figure(hits["10"]),
             fmt::format("{:.1f}", ranks["mean_rank"].get<double>())});
}

}  // namespace

Json EvaluationJson(const LinkEvaluation& found, double seconds) {
  Json fields = RanksJson(found.all);
  fields["edges"] = found.edges;
  fields["unseen_ends"] = found.unseen_ends;
  fields["leaked_edges"] = found.leaked_edges;
  fields["without_unseen"] = RanksJson(found.without_unseen);
  fields["by_side"] = {{"dst", RanksJson(found.dst)}, {"src", RanksJson(found.src)}};
  fields["by_relation"] = Json::object();
  for (const auto& [type, ranks] : found.by_type)
    fields["by_relation"][found.edge_types[type]] = RanksJson(ranks);
  if (found.negatives) fields["negatives"] = NegativesJson(*found.negatives);
  fields["passes"] = found.passes;
  fields["bytes_read"] = found.bytes_read;
  fields["read_seconds"] = found.read_seconds;
  fields["seconds"] = seconds;
  fields["queries_per_second"] = seconds > 0 ? static_cast<double>(found.all.ranks) / seconds : 0.0;
  fields["peak_memory_bytes"] = PeakResidentBytes();
  fields["definition"] = kDefinition;
  return fields;
}

std::string RanksTable(const Json& f) {
  TextTable table({1, 2, 3, 4, 5, 6});
  table.Add({"", "ranks", "MRR", "Hits@1", "Hits@3", "Hits@10", "mean rank"});
  AddRow(table, "all", f);
  if (f["unseen_ends"] != 0) AddRow(table, "without unseen ends", f["without_unseen"]);
  AddRow(table, "destinations", f["by_side"]["dst"]);
  AddRow(table, "sources", f["by_side"]["src"]);
  if (f["by_relation"].size() > 1)
    for (const auto& [name, ranks] : f["by_relation"].items()) AddRow(table, name, ranks);
  return table.ToString();
}

}  // namespace rhizome
