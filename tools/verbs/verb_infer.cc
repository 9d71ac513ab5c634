#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "gnn/options/infer_fields.h"
#include "storage/array/array_facts.h"
#include "tools/cli/allocator.h"
#include "tools/cli/gnn_library.h"
#include "tools/cli/help.h"
#include "tools/cli/option_flags.h"
#include "tools/cli/text.h"
#include "tools/cli/topology_flags.h"
#include "tools/import/gnn_flags.h"
#include "tools/verbs/verbs.h"

namespace rhizome {
namespace {

/// Internal flag that starts a worker process; not for users.
constexpr const char* kAsWorker = "--as-worker";

struct InferFlags {
  InferOptions options;
  std::string store;
  std::string model_file;
  std::optional<std::uint64_t> worker_bytes;  // set in a worker process: its memory limit
};

/// Parses a state in the format of Python's Graph.point: the store's id, five numbers, and hashes,
/// which older versions omit. Returns nullopt if it is malformed.
std::optional<StorePoint> ParsePoint(const std::string& text) {
  std::vector<std::string> parts = CLI::detail::split(text, ',');
  StorePoint point;
  std::uint64_t* const numbers[] = {&point.generation, &point.manifest_version,
                                    &point.base_sequence, &point.first_commit, &point.sequence};
  const std::size_t hashes_at = 1 + std::size(numbers);
  if (parts.size() != hashes_at && parts.size() != hashes_at + 1) return std::nullopt;
  const auto store = StoreId::Parse(parts.front());
  if (!store) return std::nullopt;
  point.store = *store;
  for (std::size_t i = 0; i < std::size(numbers); ++i) {
    const std::string& digits = parts[i + 1];
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), *numbers[i]);
    if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  }
  const auto state = StateId::Parse(parts.size() > hashes_at ? parts.back() : std::string());
  if (!state) return std::nullopt;
  point.state = *state;
  return point;
}

void AddAtFlag(CLI::App& verb, std::optional<StorePoint>& at) {
  verb.add_option_function<std::string>(
          "--at",
          [&at](const std::string& given) {
            at = ParsePoint(given);
            if (!at) {
              throw CLI::ValidationError(
                  "--at", "'" + given +
                              "' is no state: the store's id, five numbers and the hashes, "
                              "joined by commas, as graph.point has them in Python");
            }
          },
          "Compute on the state that an open graph holds (in Python, graph.point) instead of the "
          "last "
          "commit")
      ->type_name("ID,N,N,N,N,N,HASHES");
}

Json LayoutsJson(const std::vector<InferLayerReport::Layout>& layouts) {
  Json json = Json::array();
  for (const InferLayerReport::Layout& layout : layouts)
    json.push_back({{"layout", layout.name}, {"bytes", layout.bytes}});
  return json;
}

Json RangesJson(const InferRanges& ranges) {
  Json weights = Json::object();
  for (const auto& [name, weight] : ranges.weights) weights[name] = weight;
  Json measured = Json::array();
  for (const double seconds : ranges.measured)
    measured.push_back(seconds < 0 ? Json(nullptr) : Json(seconds));
  const auto optional = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json(nullptr);
  };
  return {{"learned", ranges.learned},
          {"because", ranges.because},
          {"predicted_gain", optional(ranges.predicted_gain)},
          {"doubt", optional(ranges.doubt)},
          {"model", ranges.model},
          {"cuts", ranges.cuts},
          {"weights", std::move(weights)},
          {"predicted", ranges.predicted},
          {"measured", std::move(measured)},
          {"error", optional(ranges.error)},
          {"r2", optional(ranges.r2)}};
}

Json CostsJson(const InferLayerCosts& costs) {
  Json json = Json::object();
  const auto add = [&](const char* name, const auto& figure) {
    if (std::string_view(name) == "chunk_hits") {
      json["hit_rate"] = costs.hit_rate();
    } else {
      json[name] = figure;
    }
  };
  InferLayerCosts::Each(add, costs);
  return json;
}

Json LayerJson(const InferLayerReport& layer) {
  Json json = CostsJson(layer);
  json["layout"] = layer.layout;
  json["layouts"] = LayoutsJson(layer.layouts);
  json["kind"] = layer.kind;
  json["passes"] = layer.passes;
  json["projected_bytes"] = layer.projected_bytes;
  if (layer.ranges) json["ranges"] = RangesJson(*layer.ranges);
  return json;
}

Json NonFiniteJson(const std::vector<InferReport::NonFinite>& arrays) {
  Json json = Json::array();
  for (const InferReport::NonFinite& of : arrays)
    json.push_back({{"array", of.array}, {"rows", of.rows}, {"first", IdJson(of.first)}});
  return json;
}

Json InferReportJson(const InferReport& report) {
  Json layers = Json::array();
  for (const InferLayerReport& layer : report.layers) layers.push_back(LayerJson(layer));
  const auto optional = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json(nullptr);
  };
  Json json = {{"layers", std::move(layers)},
               {"kind", report.kind},
               {"vertices", report.vertices},
               {"seconds", report.seconds},
               {"cpu_seconds", report.cpu_seconds},
               {"vertices_per_second", report.vertices_per_second},
               {"valid_accuracy", optional(report.valid_accuracy)},
               {"test_accuracy", optional(report.test_accuracy)},
               {"resumed_chunks", report.resumed_chunks},
               {"kept", report.kept},
               {"kept_across_compaction", report.kept_across_compaction},
               {"base_memory_bytes", report.base_memory_bytes},
               {"peak_memory_bytes", report.peak_memory_bytes},
               {"own_peak_memory_bytes", report.own_peak_memory_bytes},
               {"worker_peak_memory_bytes", report.worker_peak_memory_bytes},
               {"ignored", report.ignored},
               {"non_finite", NonFiniteJson(report.non_finite)},
               {"direction", NameOfChoice(report.direction)},
               {"edge_weights", report.edge_weights},
               {"published_before", report.published_before},
               {"array", report.array}};
  if (report.inputs) json["inputs"] = CostsJson(*report.inputs);
  if (!report.full_because.empty()) json["full_because"] = report.full_because;
  if (report.device) {
    json["device"] = {{"name", report.device->name},
                      {"sm", report.device->sm},
                      {"memory_bytes", report.device->memory_bytes},
                      {"batch_rows", report.device->batch_rows},
                      {"upload_bytes", report.device->upload_bytes},
                      {"download_bytes", report.device->download_bytes}};
  }
  if (report.list_reads) {
    json["topology"] = ListReadsJson(*report.list_reads);
    json["topology"]["neighbor_cache_bytes"] = report.list_reads->cache_bytes;
  }
  return json;
}

std::string DescribeMemory(const Json& f) {
  const std::string all = HumanBytes(f["peak_memory_bytes"]);
  const Json& workers = f["worker_peak_memory_bytes"];
  if (workers.empty()) return fmt::format("peak memory {}\n", all);
  std::string text = fmt::format("peak memory {} in total: main process {}, workers", all,
                                 HumanBytes(f["own_peak_memory_bytes"]));
  for (const Json& bytes : workers)
    text += fmt::format("{} {}", &bytes == &workers.front() ? "" : ",", HumanBytes(bytes));
  return text + "\n";
}

/// Returns one line per layer: how its vertices were divided into ranges and why, and how well the
/// costs of the ranges were balanced.
std::string DescribeRanges(const Json& layers) {
  std::string text;
  std::size_t number = 0;
  for (const Json& layer : layers) {
    ++number;
    if (!layer.contains("ranges")) continue;
    const Json& ranges = layer["ranges"];
    double most = 0;
    double sum = 0;
    std::size_t count = 0;
    for (const Json& seconds : ranges["measured"]) {
      if (seconds.is_null()) continue;
      most = std::max(most, seconds.get<double>());
      sum += seconds.get<double>();
      ++count;
    }
    text += fmt::format("layer {} in {} of {}", number, Plural(ranges["measured"].size(), "range"),
                        ranges["because"].get<std::string>());
    if (sum > 0)
      text += fmt::format("; the slowest took {:.2f} times the mean",
                          most * static_cast<double>(count) / sum);
    if (!ranges["error"].is_null())
      text += fmt::format("; mean error of the predicted costs: {}", Percent(ranges["error"]));
    text += "\n";
  }
  return text;
}

std::string DescribeInfer(const Json& f) {
  const std::string array = f["array"];
  const std::string next =
      fmt::format("next: rhizome similar {} ID --array {}\n", f["store"].get<std::string>(), array);
  if (f["published_before"].get<bool>())
    return fmt::format("{} was published by an earlier run: nothing to do\n", array) + next;
  std::string text =
      fmt::format("{}: {} vertices in {}, {} per second\n", array, WithCommas(f["vertices"]),
                  HumanSeconds(f["seconds"]), HumanCount(f["vertices_per_second"]));
  text += DescribeEdges(f);
  TextTable table({0, 1, 2, 3, 4, 5, 6});
  table.Add({"layer", "chunks requested", "chunks read", "bytes read", "hits, with prefill", "fill",
             "model"});
  const auto add = [&table](const std::string& name, const Json& costs) {
    table.Add({name, WithCommas(costs["chunk_requests"]), WithCommas(costs["chunk_reads"]),
               HumanBytes(costs["bytes_read"]), Percent(costs["hit_rate"]),
               HumanSeconds(costs["fill_seconds"]), HumanSeconds(costs["model_seconds"])});
  };
  if (f.contains("inputs")) add("inputs", f["inputs"]);
  std::size_t number = 0;
  for (const Json& layer : f["layers"]) add(std::to_string(++number), layer);
  text += table.ToString();
  number = 0;
  for (const Json& layer : f["layers"]) {
    if (++number == f["layers"].size() || (layer["layout"] == "stored" && layer["layouts"].empty()))
      continue;
    text += fmt::format("rows of layer {} are in the order \"{}\"", number,
                        layer["layout"].get<std::string>());
    for (const Json& layout : layer["layouts"]) {
      text += fmt::format("{} {} {}",
                          &layout == &layer["layouts"].front() ? "; bytes to read by order:" : ",",
                          layout["layout"].get<std::string>(), HumanBytes(layout["bytes"]));
    }
    text += "\n";
  }
  text += DescribeRanges(f["layers"]);
  if (f.contains("device")) {
    const Json& device = f["device"];
    text += fmt::format("matrix products on {}: {} rows per batch, {} uploaded, {} downloaded\n",
                        device["name"].get<std::string>(), WithCommas(device["batch_rows"]),
                        HumanBytes(device["upload_bytes"]), HumanBytes(device["download_bytes"]));
  }
  if (f.contains("topology")) {
    const Json& lists = f["topology"];
    text +=
        fmt::format("lists from disk: {} reads, {}, {:.1f} in flight\n", WithCommas(lists["reads"]),
                    HumanBytes(lists["bytes_read"]), lists["mean_depth"].get<double>());
  }
  if (!f["valid_accuracy"].is_null() || !f["test_accuracy"].is_null()) {
    text += fmt::format("validation {}, test {}\n", PercentOrNone(f["valid_accuracy"]),
                        PercentOrNone(f["test_accuracy"]));
  }
  for (const Json& of : f["non_finite"]) {
    text += fmt::format("NaN or infinite values in {} of {}\n", Plural(of["rows"], "row"),
                        of["array"].get<std::string>());
  }
  if (f["kept"] != 0)
    text += fmt::format("{} copied from the previous version{}\n", Plural(f["kept"], "row"),
                        f["kept_across_compaction"].get<bool>()
                            ? ", which was computed before a compaction: they can differ from a "
                              "full run by rounding"
                            : "");
  if (f.contains("full_because")) {
    text += fmt::format("all rows were computed: {}\n", f["full_because"].get<std::string>());
  }
  if (f["resumed_chunks"] != 0) {
    text += fmt::format("resumed after {} of an earlier run\n",
                        Plural(f["resumed_chunks"], "finished chunk"));
  }
  return text + DescribeMemory(f) + next;
}

/// Returns the path of this program and its arguments.
std::vector<std::string> OwnCommand() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> command;
  for (std::string argument; std::getline(file, argument, '\0');) command.push_back(argument);
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error && !command.empty()) command.front() = program.string();
  return command;
}

/// Runs a worker of another `infer`. Its report is written to standard output in the format of
/// gnn/infer/worker_pool.h. Signals are handled by the parent.
Result<Answer> RunAsWorker(const GnnEntry& gnn, const InferOptions& options,
                           std::uint64_t memory_bytes) {
  const JobControl quiet;
  RHIZOME_RETURN_IF_ERROR(gnn.ServeInfer(options, memory_bytes, quiet));
  std::_Exit(0);
}

// Runs an inference: (1) checks the flags and loads librhizome_gnn; (2) a worker runs its part and
// exits; (3) the parent prepares the command line of its workers, if any, and runs the inference;
// (4) converts the report to the answer.
Result<Answer> RunInfer(const InferFlags& flags, Session& session) {
  InferOptions options = CompleteInferOptions(flags.options);
  if (options.device == ComputeOn::kCpu && options.device_memory_bytes)
    return Fail(Status::InvalidArgument("--device-memory is for --device cuda"));
  options.store = flags.store;
  options.model_file = flags.model_file;
  RHIZOME_RETURN_IF_ERROR(CheckNewArrayName(options.out));
  RHIZOME_ASSIGN_OR_RETURN(const GnnEntry* const gnn, LoadGnnLibrary());
  // The threshold is above the size of the buffers for a tile of vertices, which all have one size
  // and can be reused.
  if (options.resources.memory_bytes != 0) ReturnFreedMemory(1 << 20);
  if (flags.worker_bytes) return RunAsWorker(*gnn, options, *flags.worker_bytes);
  if (options.workers.count != 0) {
    options.workers.command = OwnCommand();
    options.workers.command.push_back(kAsWorker);
  }
  options.note = PrintsNotes(session);
  StartMemory(session, options.resources.memory_bytes);
  RHIZOME_ASSIGN_OR_RETURN(const InferReport report, gnn->Infer(options, session.control));
  Answer answer{InferReportJson(report), DescribeInfer, {}};
  answer.fields["store"] = flags.store;
  return answer;
}

}  // namespace

void AddInferVerb(CLI::App& root, Session& session) {
  auto flags = std::make_shared<InferFlags>();
  CLI::App* verb = AddVerb(
      root, session, "infer", "Compute the embedding of every vertex and store it as an array",
      "rhizome infer demo.rz --model-file demo.safetensors --out embedding", flags, RunInfer);
  verb->add_option("STORE", flags->store, "The store's folder")->required();
  verb->add_option("--model-file", flags->model_file, "Model file that train wrote")
      ->required()
      ->type_name("F");
  OptionFlags table(*verb);
  EachInferJobField(table, flags->options);
  verb->get_option("--out")->required();
  EachComputedField(
      [&table](const Option& row, auto& field) {
        if (row.field == "mode" || row.field == "scratch") table(row, field);
      },
      flags->options);
  AddAtFlag(*verb, flags->options.at);
  AddInferFlags(*verb, flags->options);
  verb->footer(std::string(kIgnoredHelp) + verb->get_footer());
  verb->add_option(kAsWorker, flags->worker_bytes)->group("");
  ArrangeOptions(*verb,
                 {"model-file", "out", "new-version", "incremental", "features", "fanout", "memory",
                  "threads", "resume"},
                 {"live", "keep", "at", "wait", "scores", "mode", "device", "workers", "scratch",
                  "codec", "cache", "edge-weights"});
}

}  // namespace rhizome
