#include "gnn/options/training_options.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "gnn/options/train_fields.h"
#include "rhizome/sampler.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Visits the rows of all groups that `options` has, with the field and its default.
template <typename Visit>
void EachFieldAndDefault(const Visit& visit, const TrainOptions& options) {
  const TrainOptions usual;
  EachDataField(visit, options.data, usual.data);
  EachModelField(visit, options.model, usual.model);
  EachLearningField(visit, options.learning, usual.learning);
  EachResourceField(visit, options.resources, usual.resources);
  EachLinkField(visit, options.link, usual.link);
  EachJobField(visit, options.job, usual.job);
  if (const FullGraphOptions* full_graph = options.full_graph()) {
    const FullGraphOptions usual_full_graph;
    EachFullGraphField(visit, *full_graph, usual_full_graph);
  }
  const MinibatchOptions* minibatch = options.minibatch();
  if (minibatch == nullptr) return;
  EachMinibatchField(visit, *minibatch, *usual.minibatch());
  const DeviceOptions usual_device;
  if (minibatch->device) EachDeviceField(visit, *minibatch->device, usual_device);
  const PrefetchOptions usual_prefetch;
  if (minibatch->ranks) EachPrefetchField(visit, minibatch->ranks->prefetch, usual_prefetch);
}

template <typename T>
std::string TextOf(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_arithmetic_v<T>) {
    return fmt::format("{}", value);
  } else if constexpr (std::is_enum_v<T>) {
    return std::string(NameOfChoice(value));
  } else {
    static_assert(std::is_same_v<T, std::optional<std::uint64_t>>);
    return value ? fmt::format("{}", *value) : "not given";
  }
}

}  // namespace

Status CheckRanges(const TrainOptions& options) {
  Status status;
  const auto check = [&](const Option& option, const auto& value, const auto& usual) {
    if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(value)>>) {
      const auto number = static_cast<double>(value);
      if (status.ok() && value != usual && !option.Accepts(number))
        status = Status::InvalidArgument(
            fmt::format("`{}` is {}; it must be {}", option.field, value, RangeText(option)));
    }
  };
  EachFieldAndDefault(check, options);
  return status;
}

std::vector<std::string> FieldsGiven(const TrainOptions& options) {
  std::vector<std::string> fields;
  const auto add = [&](const Option& option, const auto& value, const auto& usual) {
    bool differs = false;
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, std::vector<TypedFanouts>>)
      differs = !value.empty();
    else
      differs = value != usual;
    if (differs) fields.emplace_back(option.field);
  };
  EachFieldAndDefault(add, options);
  return fields;
}

nlohmann::json DescribeModelOptions(const TrainOptions& options) {
  nlohmann::json description = nlohmann::json::object();
  const auto describe = [&](const Option& option, const auto& value, const auto& usual) {
    using Value = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::is_arithmetic_v<Value> || std::is_same_v<Value, std::vector<std::int64_t>>) {
      if (option.effect == Effect::kModel && value != usual)
        description[std::string(LeafOf(option.field))] = value;
    }
  };
  EachFieldAndDefault(describe, options);
  return description;
}

std::vector<RankFact> FactsOfRanks(const TrainOptions& options) {
  std::vector<RankFact> facts;
  const auto add = [&](const Option& option, const auto& value, const auto&) {
    using Value = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::is_arithmetic_v<Value> || std::is_enum_v<Value> ||
                  std::is_same_v<Value, std::optional<std::uint64_t>>) {
      if (option.effect == Effect::kRanks)
        facts.push_back({fmt::format("`{}`", option.field), TextOf(value)});
    }
  };
  EachFieldAndDefault(add, options);
  return facts;
}

std::vector<std::int64_t> FanoutsOf(const TrainOptions& options) {
  if (options.minibatch() != nullptr) return options.minibatch()->fanouts;
  return std::vector<std::int64_t>(options.model.layers, kAllNeighbors);
}

Transport* TransportOf(const TrainOptions& options) {
  const MinibatchOptions* minibatch = options.minibatch();
  return minibatch != nullptr && minibatch->ranks ? minibatch->ranks->transport : nullptr;
}

}  // namespace internal
}  // namespace rhizome
