#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "cache/kernels/aggregate_kernels.h"
#include "cuda/device_pool.h"
#include "cuda/kernels.h"
#include "tools/device/on_device.h"

// Compares the kernels on a device with the processor, and passes rows through a DevicePool. usage:
// check [cases]. Prints one line of JSON. Exits with 1 if a result differs, with 77 if there is no
// device. tools/device/run.sh builds it from a few files of the engine.

namespace rhizome {
namespace {

bool GatherEquals(Random& random) {
  const std::size_t row_bytes = 1 + random() % 4200;
  const std::size_t table_rows = 1 + random() % 500;
  std::vector<std::int64_t> rows(random() % 2000);
  for (std::int64_t& row : rows) row = static_cast<std::int64_t>(random() % table_rows);
  const bool bad = !rows.empty() && random() % 2 == 0;
  if (bad) rows.back() = static_cast<std::int64_t>(table_rows);
  const std::vector<unsigned char> table = RandomBytes(random, table_rows * row_bytes);
  std::vector<unsigned char> expected(rows.size() * row_bytes);
  for (std::size_t i = 0; i + (bad ? 1 : 0) < rows.size(); ++i) {
    std::copy_n(table.data() + static_cast<std::size_t>(rows[i]) * row_bytes, row_bytes,
                expected.data() + i * row_bytes);
  }
  const OnDevice<unsigned char> on_device(table);
  const OnDevice<std::int64_t> numbers(rows);
  const OnDevice<unsigned char> out(std::vector<unsigned char>(expected.size()));
  const OnDevice<std::uint32_t> flag({cuda::kNoPosition});
  cuda::GatherArgs args;
  args.table = on_device.get();
  args.table_rows = table_rows;
  args.table_stride_bytes = args.out_stride_bytes = args.row_bytes = row_bytes;
  args.rows = numbers.get();
  args.count = static_cast<std::uint32_t>(rows.size());
  args.out = out.get();
  args.out_rows = rows.size();
  args.first_bad = flag.get();
  cuda::CopyRowsOnDevice(nullptr, args);
  return out.Read() == expected &&
         flag.Read()[0] == (bad ? static_cast<std::uint32_t>(rows.size() - 1) : cuda::kNoPosition);
}

bool WideningEquals(Random& random) {
  const std::size_t columns = 1 + random() % 700;
  const std::size_t rows = 1 + random() % 300;
  const bool half = random() % 2 == 0;
  const std::vector<unsigned char> table = RandomBytes(random, rows * columns * 2);
  std::vector<float> expected(rows * columns);
  kPortableKernels.widen(half ? RowType::kFloat16 : RowType::kBfloat16, table.data(),
                         expected.size(), expected.data());
  const OnDevice<unsigned char> on_device(table);
  const OnDevice<float> out(std::vector<float>(expected.size()));
  const OnDevice<std::uint32_t> flag({cuda::kNoPosition});
  cuda::GatherArgs args;
  args.table = on_device.get();
  args.table_rows = args.out_rows = rows;
  args.table_stride_bytes = args.row_bytes = columns * 2;
  args.out_stride_bytes = columns * 4;
  args.count = static_cast<std::uint32_t>(rows);
  args.out = reinterpret_cast<unsigned char*>(out.get());
  args.first_bad = flag.get();
  cuda::WidenRowsOnDevice(nullptr, half ? cuda::Element::kFloat16 : cuda::Element::kBfloat16, args);
  return SameBits(out.Read(), expected);
}

bool IdMapEquals(Random& random, cuda::IdMapForm form) {
  std::vector<std::int64_t> ids(1 + random() % 60000);
  const std::uint64_t universe = 1 + random() % 40000;
  for (std::int64_t& id : ids) id = static_cast<std::int64_t>(random() % universe * 1000003);
  std::unordered_map<std::int64_t, std::int64_t> number;
  std::vector<std::int64_t> distinct;
  std::vector<std::int64_t> locals;
  for (const std::int64_t id : ids) {
    const auto [at, fresh] = number.try_emplace(id, static_cast<std::int64_t>(distinct.size()));
    if (fresh) distinct.push_back(id);
    locals.push_back(at->second);
  }
  const auto count = static_cast<std::uint32_t>(ids.size());
  const std::uint32_t capacity = std::bit_ceil(2 * static_cast<std::uint32_t>(distinct.size()));
  const OnDevice<std::int64_t> on_device(ids);
  const std::size_t words = cuda::IdMapWords(count);
  const OnDevice<std::int64_t> table(std::vector<std::int64_t>(2 * std::size_t{capacity}, -1));
  const OnDevice<std::uint32_t> arrays(std::vector<std::uint32_t>(ids.size() + 3 * words, 0));
  const OnDevice<std::int64_t> found_ids(std::vector<std::int64_t>(ids.size(), 0));
  const OnDevice<std::int64_t> found_locals(std::vector<std::int64_t>(ids.size(), 0));
  const OnDevice<std::uint32_t> counts({0, 0});
  const std::size_t scratch_bytes = cuda::IdMapScratchBytes(count);
  const OnDevice<unsigned char> scratch(std::vector<unsigned char>(scratch_bytes, 0));
  cuda::IdMapArgs args;
  args.ids = on_device.get();
  args.count = count;
  args.capacity = capacity;
  args.table = table.get();
  args.slots = arrays.get();
  args.bits = arrays.get() + count;
  args.counts = args.bits + words;
  args.ranks = args.counts + words;
  args.distinct = found_ids.get();
  args.locals = found_locals.get();
  args.found = counts.get();
  args.errors = counts.get() + 1;
  cuda::NumberIdsOnDevice(nullptr, form, args, scratch.get(), scratch_bytes);
  const std::vector<std::uint32_t> ends = counts.Read();
  if (ends[0] != distinct.size() || ends[1] != 0) return false;
  std::vector<std::int64_t> ids_found = found_ids.Read();
  ids_found.resize(distinct.size());
  const std::vector<std::int64_t> numbered = found_locals.Read();
  if (form != cuda::IdMapForm::kFused) return numbered == locals && ids_found == distinct;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (numbered[i] < 0 || ids_found[static_cast<std::size_t>(numbered[i])] != ids[i]) return false;
  }
  return true;
}

/// Random neighbour lists and rows; 2 % of the lists are long.
struct Lists {
  explicit Lists(Random& random) : dim(1 + random() % 513), sources(1 + random() % 400) {
    for (std::size_t t = 0; t < 1 + sources / 3; ++t) {
      const std::size_t degree = random() % 50 == 0 ? random() % 3000 : random() % 12;
      for (std::size_t i = 0; i < degree; ++i)
        index.push_back(static_cast<std::uint32_t>(random() % sources));
      offsets.push_back(static_cast<std::uint32_t>(index.size()));
    }
    constexpr RowType kTypes[] = {RowType::kFloat32, RowType::kFloat16, RowType::kBfloat16};
    type = kTypes[random() % 3];
    if (type == RowType::kFloat32) {
      const std::vector<float> values = RandomFloats(random, sources * dim);
      x.resize(values.size() * 4);
      std::memcpy(x.data(), values.data(), x.size());
    } else {
      x = RandomBytes(random, sources * dim * 2);
    }
    weight = RandomFloats(random, index.size());
    scale = RandomFloats(random, targets());
  }
  std::size_t targets() const { return offsets.size() - 1; }
  std::size_t dim;
  std::size_t sources;
  RowType type = RowType::kFloat32;
  std::vector<std::uint32_t> offsets = {0};
  std::vector<std::uint32_t> index;
  std::vector<unsigned char> x;
  std::vector<float> weight, scale;
};

bool SumEquals(Random& random, bool shared) {
  const Lists lists(random);
  std::vector<float> expected(lists.targets() * lists.dim);
  rhizome::SumArgs on_cpu;
  on_cpu.type = lists.type;
  on_cpu.x = lists.x.data();
  on_cpu.x_stride = on_cpu.dim = on_cpu.out_stride = lists.dim;
  on_cpu.begins = lists.offsets.data();
  on_cpu.ends = lists.offsets.data() + 1;
  on_cpu.index = lists.index.data();
  on_cpu.edge_weight = lists.weight.data();
  on_cpu.target_scale = lists.scale.data();
  on_cpu.out = expected.data();
  kPortableKernels.sum(on_cpu, 0, lists.targets());
  const OnDevice<unsigned char> x(lists.x);
  const OnDevice<std::uint32_t> offsets(lists.offsets);
  const OnDevice<std::uint32_t> index(lists.index);
  const OnDevice<float> weight(lists.weight);
  const OnDevice<float> scale(lists.scale);
  const OnDevice<float> out(std::vector<float>(expected.size()));
  cuda::SumArgs args;
  args.type = static_cast<cuda::Element>(lists.type);
  args.x = x.get();
  args.x_stride = args.dim = args.out_stride = lists.dim;
  args.targets = lists.targets();
  args.offsets = offsets.get();
  args.index = index.get();
  args.edge_weight = weight.get();
  args.target_scale = scale.get();
  args.out = out.get();
  (shared ? cuda::SumInSharedMemoryOnDevice : cuda::SumOnDevice)(nullptr, args);
  return SameBits(out.Read(), expected);
}

bool MaxEquals(Random& random) {
  const Lists lists(random);
  std::vector<float> expected(lists.targets() * lists.dim);
  std::vector<std::uint32_t> winner(expected.size());
  rhizome::MaxArgs on_cpu;
  on_cpu.type = lists.type;
  on_cpu.x = lists.x.data();
  on_cpu.x_stride = on_cpu.dim = on_cpu.out_stride = lists.dim;
  on_cpu.begins = lists.offsets.data();
  on_cpu.ends = lists.offsets.data() + 1;
  on_cpu.index = lists.index.data();
  on_cpu.out = expected.data();
  on_cpu.edge = winner.data();
  kPortableKernels.max(on_cpu, 0, lists.targets());
  const OnDevice<unsigned char> x(lists.x);
  const OnDevice<std::uint32_t> offsets(lists.offsets);
  const OnDevice<std::uint32_t> index(lists.index);
  const OnDevice<float> out(std::vector<float>(expected.size()));
  const OnDevice<std::uint32_t> won(std::vector<std::uint32_t>(expected.size()));
  cuda::MaxArgs args;
  args.type = static_cast<cuda::Element>(lists.type);
  args.x = x.get();
  args.x_stride = args.dim = args.out_stride = lists.dim;
  args.targets = lists.targets();
  args.offsets = offsets.get();
  args.index = index.get();
  args.out = out.get();
  args.winner = won.get();
  cuda::MaxOnDevice(nullptr, args);
  return SameBits(out.Read(), expected) && won.Read() == winner;
}

bool EdgeDotsEqual(Random& random) {
  const Lists lists(random);
  const std::vector<float> gradient = RandomFloats(random, lists.targets() * lists.dim);
  std::vector<float> expected(lists.index.size());
  rhizome::EdgeDotArgs on_cpu;
  on_cpu.type = lists.type;
  on_cpu.x = lists.x.data();
  on_cpu.x_stride = on_cpu.dim = lists.dim;
  on_cpu.begins = lists.offsets.data();
  on_cpu.ends = lists.offsets.data() + 1;
  on_cpu.index = lists.index.data();
  on_cpu.gradient = gradient.data();
  on_cpu.out = expected.data();
  kPortableKernels.edge_dot(on_cpu, 0, lists.targets());
  const OnDevice<unsigned char> x(lists.x);
  const OnDevice<std::uint32_t> offsets(lists.offsets);
  const OnDevice<std::uint32_t> index(lists.index);
  const OnDevice<float> of_targets(gradient);
  const OnDevice<float> out(std::vector<float>(expected.size()));
  cuda::EdgeDotArgs args;
  args.type = static_cast<cuda::Element>(lists.type);
  args.x = x.get();
  args.x_stride = args.dim = lists.dim;
  args.targets = lists.targets();
  args.offsets = offsets.get();
  args.index = index.get();
  args.gradient = of_targets.get();
  args.out = out.get();
  cuda::EdgeDotsOnDevice(nullptr, args);
  return SameBits(out.Read(), expected);
}

/// Steps a pool with keys 0 .. 63 and checks the rows that it delivers. The frames always hold the
/// first eight keys of the previous step: a poor policy, but a valid plan.
bool PoolDelivers(Random& random, Device& device) {
  constexpr std::size_t kRowBytes = 96;
  const std::vector<unsigned char> host = RandomBytes(random, 64 * kRowBytes);
  const auto pool =
      DevicePool::Create(device, {.frame_count = 8, .row_bytes = kRowBytes, .max_requests = 32});
  const auto reader = device.MakeStream();
  const auto back = device.AllocatePinned(32 * kRowBytes);
  if (!pool || !reader || !back) return false;
  std::vector<std::int64_t> held;
  bool equal = true;
  for (int step = 0; step < 20 && equal; ++step) {
    std::vector<std::int64_t> keys(64);
    for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<std::int64_t>(i);
    std::shuffle(keys.begin(), keys.end(), random);
    keys.resize(8 + random() % 25);
    StepPlan plan;
    std::vector<const std::byte*> missed;
    for (std::uint32_t i = 0; i < keys.size(); ++i) {
      const auto at = std::find(held.begin(), held.end(), keys[i]);
      if (at != held.end()) {
        plan.hits.push_back({i, static_cast<FrameId>(at - held.begin())});
      } else {
        plan.misses.push_back(i);
        missed.push_back(reinterpret_cast<const std::byte*>(host.data()) +
                         static_cast<std::size_t>(keys[i]) * kRowBytes);
      }
      if (i < 8) plan.inserts.push_back({i, i});
    }
    held.assign(keys.begin(), keys.begin() + 8);
    const auto rows = (*pool)->Step(plan, static_cast<std::uint32_t>(keys.size()), missed);
    equal = rows && device.Wait(*reader, rows->ready).ok() &&
            device.CopyToHost(*reader, *back, rows->data, keys.size() * kRowBytes).ok() &&
            (*pool)->Release(*rows, *reader).ok() && device.Drain(*reader).ok();
    for (std::size_t i = 0; i < keys.size() && equal; ++i) {
      equal =
          std::memcmp(static_cast<std::byte*>(*back) + i * kRowBytes,
                      host.data() + static_cast<std::size_t>(keys[i]) * kRowBytes, kRowBytes) == 0;
    }
  }
  device.FreeStream(*reader);
  device.FreePinned(*back);
  return equal;
}

int Main(int cases) {
  const auto device = OpenCudaDevice();
  if (!device) {
    std::printf("{\"skipped\": \"%s\"}\n", device.error().message().c_str());
    return 77;
  }
  const auto facts = (*device)->Facts();
  const char* given = std::getenv("RHIZOME_TEST_SEED");
  const std::uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  Random random(seed);
  struct Check {
    const char* name;
    int failed;
  } checks[] = {{"gather", 0},        {"widening gather", 0},
                {"id map", 0},        {"fused map", 0},
                {"three steps", 0},   {"sum", 0},
                {"shared sums", 0},   {"max", 0},
                {"edge dots", 0},     {"device pool", 0},
                {"sum in pieces", 0}, {"attention", 0},
                {"attention v2", 0},  {"activation", 0}};
  for (int i = 0; i < cases; ++i) {
    const bool equal[] = {GatherEquals(random),
                          WideningEquals(random),
                          IdMapEquals(random, cuda::IdMapForm::kFirstPosition),
                          IdMapEquals(random, cuda::IdMapForm::kFused),
                          IdMapEquals(random, cuda::IdMapForm::kThreeSteps),
                          SumEquals(random, false),
                          SumEquals(random, true),
                          MaxEquals(random),
                          EdgeDotsEqual(random),
                          PoolDelivers(random, **device),
                          SumInPiecesIsNear(random),
                          AttentionEquals(random),
                          AttentionV2Equals(random),
                          ActivationEquals(random)};
    for (std::size_t k = 0; k < std::size(equal); ++k) checks[k].failed += equal[k] ? 0 : 1;
  }
  int failed = 0;
  std::printf(
      "{\"device\": \"%s\", \"sm\": %d, \"memory_bytes\": %llu, \"seed\": %llu, \"cases\": %d",
      facts ? facts->name.c_str() : "?", facts ? facts->compute_capability : 0,
      facts ? static_cast<unsigned long long>(facts->memory_bytes) : 0ULL,
      static_cast<unsigned long long>(seed), cases);
  for (const Check& check : checks) {
    std::printf(", \"%s\": %d", check.name, cases - check.failed);
    failed += check.failed;
  }
  std::printf(", \"failed\": %d}\n", failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace rhizome

int main(int argc, char** argv) { return rhizome::Main(argc > 1 ? std::atoi(argv[1]) : 40); }
