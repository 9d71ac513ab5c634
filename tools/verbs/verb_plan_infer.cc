#include <fmt/format.h>

#include <map>

#include "tools/cli/gnn_library.h"
#include "tools/cli/help.h"
#include "tools/cli/text.h"
#include "tools/import/gnn_flags.h"
#include "tools/verbs/verb_plan.h"
#include "tools/verbs/verbs.h"

namespace rhizome {
namespace {

struct PlanInferFlags {
  InferOptions options;
  std::string store;
  std::string model_file;
};

/// Returns the layouts chosen by the workers, most frequent first, such as "blocks/bfs, blocks/pds
/// on 3 of 8 workers".
std::string Chosen(const std::vector<std::string>& by_worker) {
  std::map<std::string, std::size_t> counts;
  for (const std::string& name : by_worker) ++counts[name];
  if (counts.size() == 1) return counts.begin()->first;
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (const auto& [name, count] : counts) ranked.emplace_back(count, name);
  std::sort(ranked.rbegin(), ranked.rend());
  std::string text;
  for (const auto& [count, name] : ranked) {
    text += fmt::format("{}{} ({} of {} workers)", text.empty() ? "" : ", ", name, count,
                        by_worker.size());
  }
  return text;
}

Json LayerJson(const InferPlanLayer& layer) {
  Json layouts = Json::array();
  for (const InferPlanLayer::Layout& layout : layer.layouts) {
    layouts.push_back({{"layout", layout.name},
                       {"chunk_requests", layout.chunk_requests},
                       {"chunk_reads", layout.chunk_reads}});
  }
  return {{"source", layer.source},
          {"chunk_rows", layer.chunk_rows},
          {"chunks", layer.chunks},
          {"cache_chunks", layer.cache_chunks},
          {"chunk_requests", layer.chunk_requests},
          {"chunk_reads", layer.chunk_reads},
          {"layout", layer.layout},
          {"worker_chunks", layer.worker_chunks},
          {"layouts", std::move(layouts)},
          {"chosen", Chosen(layer.chosen_layouts)},
          {"chosen_by_worker", layer.chosen_layouts},
          {"chosen_requests", layer.chosen_requests},
          {"chosen_reads", layer.chosen_reads}};
}

std::string DescribeLayer(const Json& layer) {
  std::string text = fmt::format(
      "  local store, rows written in the order \"{}\": {} chunks requested, {} read\n"
      "  disk caches of the workers, {} chunks in total:\n",
      layer["layout"].get<std::string>(), WithCommas(layer["chunk_requests"]),
      WithCommas(layer["chunk_reads"]), WithCommas(layer["worker_chunks"]));
  TextTable table({1, 2});
  table.Add({"layout", "chunks requested", "read"});
  for (const Json& layout : layer["layouts"]) {
    table.Add({layout["layout"].get<std::string>(), WithCommas(layout["chunk_requests"]),
               WithCommas(layout["chunk_reads"])});
  }
  table.Add({"chosen", WithCommas(layer["chosen_requests"]), WithCommas(layer["chosen_reads"])});
  return text + table.ToString("    ") +
         fmt::format("    chosen, with the fewest reads: {}\n", layer["chosen"].get<std::string>());
}

std::string DescribePlanInfer(const Json& f) {
  std::string text = fmt::format("{} vertices, {}, memory cache {}; counted in {}\n",
                                 WithCommas(f["vertices"]), Plural(f["workers"], "worker"),
                                 HumanBytes(f["cache_bytes"]), HumanSeconds(f["seconds"]));
  std::size_t number = 0;
  for (const Json& layer : f["layers"]) {
    text +=
        fmt::format("layer {} reads {}: {} of {} rows, {} of them in the memory cache\n", ++number,
                    layer["source"].get<std::string>(), Plural(layer["chunks"], "chunk"),
                    WithCommas(layer["chunk_rows"]), WithCommas(layer["cache_chunks"]));
    text += DescribeLayer(layer);
  }
  return text;
}

Result<Answer> RunPlanInfer(const PlanInferFlags& flags, Session& session) {
  InferOptions options = CompleteInferOptions(flags.options);
  options.store = flags.store;
  options.model_file = flags.model_file;
  options.out = "plan";
  RHIZOME_ASSIGN_OR_RETURN(const GnnEntry* const gnn, LoadGnnLibrary());
  RHIZOME_ASSIGN_OR_RETURN(const InferPlan plan, gnn->PlanInfer(options, session.control));
  Json layers = Json::array();
  for (const InferPlanLayer& layer : plan.layers) layers.push_back(LayerJson(layer));
  return Answer{{{"layers", std::move(layers)},
                 {"vertices", plan.vertices},
                 {"workers", plan.workers},
                 {"cache_bytes", plan.cache_bytes},
                 {"seconds", plan.seconds}},
                DescribePlanInfer,
                {}};
}

}  // namespace

void AddPlanInfer(CLI::App& plan, Session& session) {
  auto flags = std::make_shared<PlanInferFlags>();
  CLI::App* verb = AddVerb(
      plan, session, "infer", "Count the chunks that an inference would read under each layout",
      "rhizome plan infer demo.rz --model-file demo.safetensors --cache-bytes 1M", flags,
      RunPlanInfer);
  verb->add_option("STORE", flags->store, "The store's folder")->required();
  verb->add_option("--model-file", flags->model_file, "Model file that train wrote")
      ->required()
      ->type_name("F");
  AddInferFlags(*verb, flags->options);
  ArrangeOptions(*verb, {"model-file", "features", "fanout", "memory", "threads"},
                 {"scores", "cache", "cache-bytes", "layout", "codec"});
}

}  // namespace rhizome
