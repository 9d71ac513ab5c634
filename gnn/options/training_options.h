#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "rhizome/status.h"
#include "rhizome/train_options.h"
#include "storage/remote/rank_calls.h"

namespace rhizome {
inline namespace internal {

// Functions of the table of TrainOptions (train_fields.h) over the options of one training.

/// Checks that every number is in the range of its row. Errors: kInvalidArgument, naming the field.
Status CheckRanges(const TrainOptions& options);

/// Returns the options that the trained weights depend on and that differ from the default
/// (Effect::kModel), by the last part of their field.
nlohmann::json DescribeModelOptions(const TrainOptions& options);

/// Returns the fields that differ from their defaults.
std::vector<std::string> FieldsGiven(const TrainOptions& options);

/// Returns the options that must be equal on all ranks (Effect::kRanks).
std::vector<RankFact> FactsOfRanks(const TrainOptions& options);

/// Returns the fanouts by layer; all neighbours for full-graph training.
std::vector<std::int64_t> FanoutsOf(const TrainOptions& options);

/// Returns the connection to the other ranks; null: this process trains alone.
Transport* TransportOf(const TrainOptions& options);

}  // namespace internal
}  // namespace rhizome
