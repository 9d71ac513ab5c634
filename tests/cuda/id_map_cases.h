#pragma once

#include <unordered_map>

#include "cuda/case_tools.h"
#include "cuda/id_map.cuh"
#include "cuda/id_map_alternatives.cuh"

namespace rhizome::simulator {

/// Computes on the CPU the prefix sum that is needed between two launches.
inline void ScanRegion(const Mem<std::uint32_t>& from, const Mem<std::uint32_t>& to,
                       std::uint32_t count) {
  const std::vector<std::uint32_t> values = Download(from);
  auto* const data = reinterpret_cast<std::uint32_t*>(to.region()->data);
  std::uint32_t sum = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    data[i] = sum;
    sum += values[i];
    to.region()->cells[i].initialized = true;
  }
}

/// A hash table and the arrays of a numbering; the regions belong to the machine.
struct DeviceIdMap {
  /// `positions`: of all calls.
  DeviceIdMap(std::uint32_t capacity, std::size_t max_ids, std::size_t positions) {
    args.capacity = capacity;
    SetTable(std::vector<std::uint32_t>(4 * std::size_t{capacity}, 0xFFFFFFFF));
    args.distinct = Allocate<std::int64_t>("distinct", max_ids);
    args.locals = Allocate<std::int64_t>("locals", positions);
    args.found = Upload("found", std::vector<std::uint32_t>{0});
    args.errors = Upload("errors", std::vector<std::uint32_t>{0});
  }
  /// Races are detected in cells of four bytes, the size of first positions and numbers.
  void SetTable(const std::vector<std::uint32_t>& words) {
    args.table = cuda::Cast<std::int64_t>(Upload("table", words));
  }
  /// Allocates the arrays of a call over `ids`.
  void Next(const std::vector<std::int64_t>& ids) {
    args.ids = Upload("ids", ids);
    args.count = static_cast<std::uint32_t>(ids.size());
    args.slots = Allocate<std::uint32_t>("slots", ids.size());
    const std::size_t words = cuda::IdMapWords(args.count);
    args.bits = Allocate<std::uint32_t>("bits", words);
    args.counts = Allocate<std::uint32_t>("counts", words);
    args.ranks = Allocate<std::uint32_t>("ranks", words);
  }
  /// Returns the numbers that the last call assigned.
  std::vector<std::int64_t> locals() const {
    const std::vector<std::int64_t> all = Download(args.locals);
    return {all.begin() + args.base, all.begin() + args.base + args.count};
  }
  std::uint32_t found() const { return Download(args.found)[0]; }
  std::uint32_t errors() const { return Download(args.errors)[0]; }
  std::vector<std::int64_t> distinct() const {
    std::vector<std::int64_t> ids = Download(args.distinct);
    ids.resize(std::min<std::size_t>(found(), ids.size()));
    return ids;
  }
  cuda::IdMapArgsOf<Mem> args;
};

/// Reference: numbers ids by first appearance, with the standard library.
struct ExpectedNumbers {
  std::unordered_map<std::int64_t, std::int64_t> number;
  std::vector<std::int64_t> distinct;
  std::vector<std::int64_t> Number(const std::vector<std::int64_t>& ids) {
    std::vector<std::int64_t> locals;
    for (const std::int64_t id : ids) {
      const auto [at, fresh] = number.try_emplace(id, static_cast<std::int64_t>(distinct.size()));
      if (fresh) distinct.push_back(id);
      locals.push_back(at->second);
    }
    return locals;
  }
};

/// Returns ids with repeats, some of them very large.
inline std::vector<std::int64_t> RandomIds(Random& random, std::size_t count,
                                           std::uint64_t universe) {
  std::vector<std::int64_t> ids(count);
  for (std::int64_t& id : ids) {
    const std::uint64_t number = random() % universe;
    id = static_cast<std::int64_t>(number % 3 == 0 ? number << 40 : number);
  }
  return ids;
}

/// Numbers two or three lists of ids with the same table, whose size is the minimum, or so small
/// that every slot is used.
inline std::string IdMapCase(Random& random) {
  ExpectedNumbers expected;
  std::vector<std::vector<std::int64_t>> calls(2 + random() % 2);
  std::vector<std::vector<std::int64_t>> locals;
  const std::uint64_t universe = 1 + random() % 100;
  for (auto& ids : calls) {
    ids = RandomIds(random, 1 + random() % 60, universe);
    locals.push_back(expected.Number(ids));
  }
  const bool full = random() % 2 == 0;
  const std::uint32_t capacity =
      std::bit_ceil(static_cast<std::uint32_t>(expected.distinct.size()) * (full ? 1 : 2));
  std::size_t positions = 0;
  for (const auto& ids : calls) positions += ids.size();
  DeviceIdMap map(capacity, expected.distinct.size(), positions);
  std::string wrong;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    map.Next(calls[i]);
    cuda::LaunchIdMap(0, map.args, ScanRegion, SmallGeometry(random));
    if (map.locals() != locals[i]) wrong = "id map: numbers differ\n";
    map.args.base += map.args.count;
    map.args.known = map.found();
  }
  if (map.distinct() != expected.distinct) wrong += "id map: distinct ids differ\n";
  if (map.errors() != 0) wrong += "id map: errors " + std::to_string(map.errors()) + "\n";
  return wrong + Machine::Current().Describe();
}

/// With more distinct ids than slots, or an invalid id, the error is reported and the launch ends.
inline std::string IdMapErrorCase(Random& random) {
  std::vector<std::int64_t> ids = RandomIds(random, 40, 1000);
  ids.push_back(77);
  const bool sentinel = random() % 2 == 0;
  if (sentinel) ids[random() % 40] = random() % 2 == 0 ? cuda::kFreeKey : -5;
  DeviceIdMap map(sentinel ? 128 : 8, ids.size(), ids.size());
  map.Next(ids);
  cuda::LaunchIdMap(0, map.args, ScanRegion, SmallGeometry(random));
  const bool said = map.errors() == (sentinel ? cuda::kBadId : cuda::kTableFull);
  const std::vector<std::int64_t> locals = Download(map.args.locals);
  const bool marked = std::find(locals.begin(), locals.end(), -1) != locals.end();
  return Wrong(Machine::Current(), said && marked, "id map: an error");
}

inline std::string ThreeStepsCase(Random& random) {
  const std::vector<std::int64_t> ids = RandomIds(random, 1 + random() % 200, 1 + random() % 100);
  ExpectedNumbers expected;
  const std::vector<std::int64_t> locals = expected.Number(ids);
  DeviceIdMap map(256, expected.distinct.size(), ids.size());
  map.Next(ids);
  cuda::LaunchThreeSteps(0, map.args, ScanRegion, {32U << random() % 3, 1});
  return Wrong(Machine::Current(),
               Download(map.args.locals) == locals && map.distinct() == expected.distinct,
               "three steps");
}

/// FastGL's numbering: each distinct id has one number; the numbers are 0, 1, ... in some order.
inline std::string FusedMapCase(Random& random) {
  const std::vector<std::int64_t> ids = RandomIds(random, 1 + random() % 200, 1 + random() % 100);
  ExpectedNumbers expected;
  expected.Number(ids);
  DeviceIdMap map(256, expected.distinct.size(), ids.size());
  map.Next(ids);
  cuda::LaunchFusedMap(0, map.args, SmallGeometry(random));
  const std::vector<std::int64_t> locals = Download(map.args.locals);
  const std::vector<std::int64_t> distinct = map.distinct();
  bool equal = distinct.size() == expected.distinct.size();
  for (std::size_t i = 0; i < ids.size() && equal; ++i) {
    equal = locals[i] >= 0 && locals[i] < static_cast<std::int64_t>(distinct.size()) &&
            distinct[static_cast<std::size_t>(locals[i])] == ids[i];
  }
  return Wrong(Machine::Current(), equal, "fused map");
}

}  // namespace rhizome::simulator
