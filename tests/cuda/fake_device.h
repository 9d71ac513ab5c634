#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cache/kernels/simd.h"
#include "cuda/device.h"
#include "cuda/kernels_of_processor.h"

namespace rhizome::testing {

/// A device in host memory for tests. Queued work is done late, in any order that streams and
/// events allow; a seed determines the order. faults() lists what may go wrong on a real device:
/// unordered work on two streams that uses the same bytes, host memory that changes while a kernel
/// may read it, memory that does not exist or is freed while work that uses it may be running,
/// copies of memory that is not pinned, and, after Finish, leaks. The n-th fallible call can be
/// made to fail. Threads: one.
class FakeDevice : public Device {
 public:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  explicit FakeDevice(std::uint64_t seed) : random_(seed) {}

  std::uint64_t fail_at = kNever;  ///< number of the call that fails, from 0
  bool may_register = true;
  bool has_tensors = false;  ///< memory of unknown origin is libtorch's, on this device
  std::uint64_t calls() const { return calls_; }
  const std::vector<std::string>& faults() const { return faults_; }
  std::uint64_t uploaded_bytes() const { return uploaded_bytes_; }

  /// Returns the bytes of device memory that are allocated now.
  std::uint64_t allocated_bytes() const {
    std::uint64_t bytes = 0;
    for (const auto& [begin, piece] : pieces_) {
      if (piece.kind == Kind::kDevice) bytes += piece.bytes;
    }
    return bytes;
  }

  /// Does all remaining work and lists leaks.
  void Finish() {
    while (RunOne()) {
    }
    for (const auto& [begin, piece] : pieces_) Fault(std::string(KindName(piece.kind)) + " leaks");
    for (const Stream& stream : streams_) {
      if (stream.open) Fault("a stream leaks");
    }
    for (const Event& event : events_) {
      if (event.open) Fault("an event leaks");
    }
  }

  Result<DeviceProperties> Facts() override {
    return DeviceProperties{.name = "fake", .compute_capability = 90, .memory_bytes = 1 << 30};
  }

  Result<void*> Allocate(std::size_t bytes) override { return NewPiece(Kind::kDevice, bytes); }
  void Free(void* memory) override { Drop(memory, Kind::kDevice); }
  Result<void*> AllocatePinned(std::size_t bytes) override {
    return NewPiece(Kind::kPinned, bytes);
  }
  void FreePinned(void* memory) override { Drop(memory, Kind::kPinned); }

  Status Register(void* memory, std::size_t bytes) override {
    if (!may_register) return Status::Unsupported("fake: nothing may be registered");
    RHIZOME_RETURN_IF_ERROR(Call(StatusCode::kUnsupported));
    pieces_[static_cast<std::byte*>(memory)] = {Kind::kRegistered, bytes, {}};
    return Status::Ok();
  }
  void Unregister(void* memory) override {
    std::erase_if(host_reads_, [&](const HostRead& read) {
      std::size_t offset = 0;
      return Find(read.at, 1, offset) == Find(memory, 1, offset);
    });
    Drop(memory, Kind::kRegistered);
  }

  Result<DeviceStream> MakeStream() override {
    RHIZOME_RETURN_IF_ERROR(Call(StatusCode::kOutOfMemory));
    return AddStream(true);
  }
  void FreeStream(DeviceStream stream) override {
    if (!streams_[stream].work.empty()) Fault("a stream is freed before its work is waited for");
    streams_[stream].open = false;
  }

  Status CopyToDevice(DeviceStream stream, void* to, const void* from, std::size_t bytes) override {
    stream = IndexOf(stream);
    RHIZOME_RETURN_IF_ERROR(Call(StatusCode::kIoError));
    Check(from, bytes, {Kind::kPinned, Kind::kRegistered}, "copied from");
    Check(to, bytes, {Kind::kDevice}, "copied to");
    uploaded_bytes_ += bytes;
    Queue(stream, {{from, bytes, false}, {to, bytes, true}}, [=] { std::memcpy(to, from, bytes); });
    return Status::Ok();
  }
  Status CopyToHost(DeviceStream stream, void* to, const void* from, std::size_t bytes) override {
    stream = IndexOf(stream);
    RHIZOME_RETURN_IF_ERROR(Call(StatusCode::kIoError));
    Check(from, bytes, {Kind::kDevice}, "copied from");
    Check(to, bytes, {Kind::kPinned, Kind::kRegistered}, "copied to");
    std::memset(to, 0xDB, bytes);  // so that reading before the copy shows
    Queue(stream, {{from, bytes, false}, {to, bytes, true}}, [=] { std::memcpy(to, from, bytes); });
    return Status::Ok();
  }

  Status Gather(DeviceStream stream, const cuda::GatherArgs& args) override {
    stream = IndexOf(stream);
    RHIZOME_RETURN_IF_ERROR(Call(StatusCode::kIoError));
    const std::size_t table = (args.table_rows - 1) * args.table_stride_bytes + args.row_bytes;
    const std::size_t out = (args.out_rows - 1) * args.out_stride_bytes + args.row_bytes;
    const std::size_t numbers = args.count * sizeof(std::int64_t);
    std::vector<Use> uses = {{args.table, table, false},
                             {args.out, out, true},
                             {args.first_bad, sizeof(std::uint32_t), true}};
    if (args.rows != nullptr) uses.push_back({args.rows, numbers, false});
    if (args.place != nullptr) uses.push_back({args.place, numbers, false});
    if (args.from_host != IsOfHost(args.table)) Fault("a gather does not know where its table is");
    if (args.from_host) uploaded_bytes_ += args.count * args.row_bytes;
    for (const Use& use : uses)
      Check(use.begin, use.bytes, {Kind::kDevice, Kind::kPinned, Kind::kRegistered}, "gathered");
    Join(streams_[stream].clock, host_);
    const std::uint64_t number = streams_[stream].clock[stream] + 1;
    Queue(stream, std::move(uses), [this, args, stream, number] {
      for (std::uint32_t i = 0; i < args.count; ++i) {
        const std::int64_t row = args.rows == nullptr ? i : args.rows[i];
        const std::int64_t place = args.place == nullptr ? i : args.place[i];
        if (row < 0 || static_cast<std::uint64_t>(row) >= args.table_rows || place < 0 ||
            static_cast<std::uint64_t>(place) >= args.out_rows) {
          *args.first_bad = std::min(*args.first_bad, i);
          continue;
        }
        const unsigned char* const from =
            args.table + static_cast<std::size_t>(row) * args.table_stride_bytes;
        std::memcpy(args.out + static_cast<std::size_t>(place) * args.out_stride_bytes, from,
                    args.row_bytes);
        if (args.from_host)
          host_reads_.push_back({from, {from, from + args.row_bytes}, stream, number});
      }
    });
    return Status::Ok();
  }

  Status Sum(DeviceStream stream, const cuda::SumArgs& args) override {
    const std::size_t out = args.targets == 0 ? 0 : (args.targets - 1) * args.out_stride + args.dim;
    return Aggregate(stream, args.offsets, args.targets, args.out, out, [this, args] {
      CheckPieces(args);
      const SumArgs same{.type = static_cast<RowType>(args.type),
                         .x = args.x,
                         .x_stride = args.x_stride,
                         .dim = args.dim,
                         .begins = args.offsets,
                         .ends = args.offsets + 1,
                         .index = args.index,
                         .source_scale = args.source_scale,
                         .edge_weight = args.edge_weight,
                         .target_scale = args.target_scale,
                         .initial = args.initial,
                         .initial_stride = args.initial_stride,
                         .initial_rows = args.initial_rows,
                         .initial_scale = args.initial_scale,
                         .out = args.out,
                         .out_stride = args.out_stride};
      Kernels().sum(same, 0, args.targets);
    });
  }
  Status Max(DeviceStream stream, const cuda::MaxArgs& args) override {
    const std::size_t out = args.targets == 0 ? 0 : (args.targets - 1) * args.out_stride + args.dim;
    return Aggregate(stream, args.offsets, args.targets, args.out, out, [args] {
      const MaxArgs same{.type = static_cast<RowType>(args.type),
                         .x = args.x,
                         .x_stride = args.x_stride,
                         .dim = args.dim,
                         .begins = args.offsets,
                         .ends = args.offsets + 1,
                         .index = args.index,
                         .out = args.out,
                         .out_stride = args.out_stride,
                         .edge = args.winner};
      Kernels().max(same, 0, args.targets);
    });
  }
  Status MaxGradient(DeviceStream stream, const cuda::MaxGradientArgs& args) override {
    return Aggregate(stream, args.offsets, args.sources, args.out, args.sources * args.dim, [args] {
      const MaxGradientArgs same{.gradient = args.gradient,
                                 .winner = args.winner,
                                 .dim = args.dim,
                                 .begins = args.offsets,
                                 .ends = args.offsets + 1,
                                 .target = args.target,
                                 .edge = args.edge,
                                 .out = args.out};
      Kernels().max_gradient(same, 0, args.sources);
    });
  }
  Status EdgeDots(DeviceStream stream, const cuda::EdgeDotArgs& args) override {
    return Aggregate(stream, args.offsets, args.targets, args.out, 0, [args] {
      const EdgeDotArgs same{.type = static_cast<RowType>(args.type),
                             .x = args.x,
                             .x_stride = args.x_stride,
                             .dim = args.dim,
                             .begins = args.offsets,
                             .ends = args.offsets + 1,
                             .index = args.index,
                             .gradient = args.gradient,
                             .out = args.out};
      Kernels().edge_dot(same, 0, args.targets);
    });
  }
  Status Attend(DeviceStream stream, const cuda::AttendArgs& args) override {
    return Aggregate(stream, args.offsets, args.targets, args.out,
                     args.targets * args.heads * args.width, [args] { AttendWithKernels(args); });
  }
  Status AttendGradient(DeviceStream stream, const cuda::AttendGradientArgs& args) override {
    return Aggregate(stream, args.offsets, args.targets, args.x_gradient,
                     args.sources * args.heads * args.width,
                     [args] { AttendGradientWithKernels(args); });
  }
  Status AttendGatv2(DeviceStream stream, const cuda::AttendV2Args& args) override {
    return Aggregate(stream, args.offsets, args.targets, args.out,
                     args.targets * args.heads * args.width, [args] { AttendV2WithKernels(args); });
  }
  Status AttendV2Gradient(DeviceStream stream, const cuda::AttendV2GradientArgs& args) override {
    return Aggregate(stream, args.offsets, args.targets, args.x_gradient,
                     args.sources * args.heads * args.width,
                     [args] { AttendV2GradientPlainly(args); });
  }
  Status Activate(DeviceStream stream, const cuda::ActivateArgs& args) override {
    const std::size_t bytes = args.rows * args.dim * sizeof(float);
    return Elementwise(stream, {{args.in, bytes, false}, {args.out, bytes, true}}, [args] {
      Kernels().activate({.in = args.in,
                          .in_stride = args.dim,
                          .out = args.out,
                          .out_stride = args.dim,
                          .dim = args.dim,
                          .relu = args.relu,
                          .dropped = args.dropout.dropped,
                          .scale = args.dropout.scale,
                          .seed = args.dropout.seed,
                          .first_row = args.dropout.first_row},
                         0, args.rows);
    });
  }
  Status ActivateGradient(DeviceStream stream, const cuda::ActivateGradientArgs& args) override {
    const std::size_t bytes = args.count * sizeof(float);
    const std::vector<Use> uses = {
        {args.result, bytes, false}, {args.gradient, bytes, false}, {args.out, bytes, true}};
    return Elementwise(stream, uses, [args] {
      Kernels().activate_gradient({.result = args.result,
                                   .gradient = args.gradient,
                                   .dim = 1,
                                   .scale = args.scale,
                                   .out = args.out},
                                  0, args.count);
    });
  }

  Result<DeviceEvent> Record(DeviceStream stream) override {
    stream = IndexOf(stream);
    RHIZOME_RETURN_IF_ERROR(Call(StatusCode::kIoError));
    std::size_t event = 0;
    while (event < events_.size() && events_[event].open) ++event;
    if (event == events_.size()) events_.emplace_back();
    const auto happened = std::make_shared<bool>(false);
    Queue(stream, {}, [happened] { *happened = true; });
    events_[event] = {.open = true, .happened = happened, .clock = streams_[stream].clock};
    return static_cast<DeviceEvent>(event);
  }
  Status Wait(DeviceStream stream, DeviceEvent event) override {
    stream = IndexOf(stream);
    RHIZOME_RETURN_IF_ERROR(Call(StatusCode::kIoError));
    if (!events_[event].open) Fault("a freed event is waited for");
    Join(streams_[stream].clock, events_[event].clock);
    streams_[stream].work.push_back({.wanted = events_[event].happened, .run = {}});
    FinishDefault(stream);
    return Status::Ok();
  }
  Status Synchronize(DeviceEvent event) override {
    RHIZOME_RETURN_IF_ERROR(Call(StatusCode::kIoError));
    if (!events_[event].open) Fault("a freed event is waited for");
    while (!*events_[event].happened && RunOne()) {
    }
    JoinHost(events_[event].clock);
    return Status::Ok();
  }
  Status Drain(DeviceStream stream) override {
    stream = IndexOf(stream);
    while (!streams_[stream].work.empty() && RunOne()) {
    }
    JoinHost(streams_[stream].clock);
    return Call(StatusCode::kIoError);
  }
  void FreeEvent(DeviceEvent event) override { events_[event].open = false; }

 private:
  enum class Kind : std::uint8_t { kDevice, kPinned, kRegistered };
  using Clock = std::vector<std::uint64_t>;  // for each stream, the work that came before
  struct Use {
    const void* begin;
    std::size_t bytes;
    bool writes;
  };
  struct Access {
    std::size_t begin, end;
    bool writes;
    DeviceStream stream;
    std::uint64_t number;  // of the work in its stream
  };
  struct Piece {
    Kind kind = Kind::kDevice;
    std::size_t bytes = 0;
    std::vector<Access> accesses;
    std::vector<std::byte> storage = {};
  };
  /// A row in host memory that a kernel has read.
  struct HostRead {
    const unsigned char* at;
    std::vector<unsigned char> bytes;
    DeviceStream stream;
    std::uint64_t number;
  };
  struct Work {
    std::shared_ptr<const bool> wanted;  // the event that must happen first, or null
    std::function<void()> run;
  };
  struct Stream {
    bool open = false;
    Clock clock;
    std::deque<Work> work;
  };
  struct Event {
    bool open = false;
    std::shared_ptr<bool> happened = nullptr;  // shared with the work that waits for it
    Clock clock = {};
  };

  static const char* KindName(Kind kind) {
    return kind == Kind::kDevice   ? "memory of the device"
           : kind == Kind::kPinned ? "pinned memory"
                                   : "registered memory";
  }
  /// Checks that each list of more than `longest` edges is covered by consecutive pieces, and no
  /// other list has pieces.
  void CheckPieces(const cuda::SumArgs& args) {
    std::uint32_t next = 0;
    for (std::uint32_t t = 0; t < args.targets && args.piece_count > 0; ++t) {
      if (args.offsets[t + 1] - args.offsets[t] <= args.longest) continue;
      std::uint32_t edge = args.offsets[t];
      while (next < args.piece_count && args.pieces[next].target == t &&
             args.pieces[next].begin == edge)
        edge = args.pieces[next++].end;
      if (edge != args.offsets[t + 1]) Fault("the pieces of a long list are not all of it");
    }
    if (next != args.piece_count) Fault("a piece is of no long list");
  }

  void Fault(const std::string& text) {
    if (faults_.size() < 20) faults_.push_back(text);
  }
  Status Call(StatusCode code) {
    if (calls_++ != fail_at) return Status::Ok();
    return {code, "fake: this call fails"};
  }
  static void Join(Clock& into, const Clock& from) {
    for (std::size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
  }

  /// Records that the host has waited. Host memory that kernels read must not have changed until
  /// now.
  void JoinHost(const Clock& clock) {
    Join(host_, clock);
    std::erase_if(host_reads_, [&](const HostRead& read) {
      if (read.number > host_[read.stream]) return false;
      if (!std::equal(read.bytes.begin(), read.bytes.end(), read.at))
        Fault("the host writes memory that a kernel reads");
      return true;
    });
  }

  Result<void*> NewPiece(Kind kind, std::size_t bytes) {
    RHIZOME_RETURN_IF_ERROR(Call(StatusCode::kOutOfMemory));
    std::vector<std::byte> storage(bytes, std::byte{0xA5});
    std::byte* const memory = storage.data();
    pieces_[memory] = {kind, bytes, {}, std::move(storage)};
    return memory;
  }
  void Drop(void* memory, Kind kind) {
    const auto found = pieces_.find(static_cast<std::byte*>(memory));
    if (found == pieces_.end() || found->second.kind != kind) {
      return Fault("something is given back that is no " + std::string(KindName(kind)));
    }
    for (const Access& access : found->second.accesses) {
      if (access.number > host_[access.stream]) {
        Fault(std::string(KindName(kind)) + " is given back before its use is waited for");
        break;
      }
    }
    while (RunOne()) {  // the test can continue
    }
    pieces_.erase(found);
  }
  Piece* Find(const void* begin, std::size_t bytes, std::size_t& offset) {
    auto* const at = static_cast<std::byte*>(const_cast<void*>(begin));
    auto found = pieces_.upper_bound(at);
    if (found == pieces_.begin()) return nullptr;
    --found;
    offset = static_cast<std::size_t>(at - found->first);
    return offset + bytes <= found->second.bytes ? &found->second : nullptr;
  }
  bool IsOfHost(const void* begin) {
    std::size_t offset = 0;
    const Piece* const piece = Find(begin, 1, offset);
    return piece != nullptr && piece->kind != Kind::kDevice;
  }
  void Check(const void* begin, std::size_t bytes, std::initializer_list<Kind> kinds,
             const char* what) {
    std::size_t offset = 0;
    const Piece* const piece = Find(begin, bytes, offset);
    if (piece == nullptr && has_tensors) return;
    if (piece == nullptr || std::find(kinds.begin(), kinds.end(), piece->kind) == kinds.end()) {
      Fault("memory is " + std::string(what) + " that is not there, or not of that kind");
    }
  }

  /// Queues work, and reports unordered uses of the same bytes.
  void Queue(DeviceStream stream, std::vector<Use> uses, std::function<void()> run) {
    Clock& clock = streams_[stream].clock;
    Join(clock, host_);
    const std::uint64_t number = ++clock[stream];
    for (const Use& use : uses) {
      std::size_t offset = 0;
      Piece* const piece = Find(use.begin, use.bytes, offset);
      if (piece == nullptr) continue;
      std::erase_if(piece->accesses, [&](const Access& a) { return a.number <= host_[a.stream]; });
      for (const Access& other : piece->accesses) {
        if (other.number <= clock[other.stream]) continue;
        if (offset < other.end && other.begin < offset + use.bytes && (use.writes || other.writes))
          Fault("work on two streams uses the same bytes in no order");
      }
      piece->accesses.push_back({offset, offset + use.bytes, use.writes, stream, number});
    }
    streams_[stream].work.push_back({.wanted = nullptr, .run = std::move(run)});
    while (random_() % 4 == 0 && RunOne()) {
    }
    FinishDefault(stream);
  }

  /// Queues an aggregation over `rows` lists, which writes `out_count` numbers (0: unknown).
  Status Aggregate(DeviceStream stream, const std::uint32_t* offsets, std::size_t rows, float* out,
                   std::size_t out_count, std::function<void()> run) {
    RHIZOME_RETURN_IF_ERROR(Call(StatusCode::kIoError));
    const std::vector<Use> uses = {{offsets, (rows + 1) * sizeof(*offsets), false},
                                   {out, out_count * sizeof(*out), true}};
    for (const Use& use : uses) Check(use.begin, use.bytes, {Kind::kDevice}, "aggregated");
    Queue(IndexOf(stream), uses, std::move(run));
    return Status::Ok();
  }

  Status Elementwise(DeviceStream stream, std::vector<Use> uses, std::function<void()> run) {
    RHIZOME_RETURN_IF_ERROR(Call(StatusCode::kIoError));
    for (const Use& use : uses) Check(use.begin, use.bytes, {Kind::kDevice}, "activated");
    Queue(IndexOf(stream), std::move(uses), std::move(run));
    return Status::Ok();
  }

  DeviceStream AddStream(bool open) {
    for (Stream& stream : streams_) stream.clock.push_back(0);
    host_.push_back(0);
    streams_.push_back({.open = open, .clock = host_, .work = {}});
    return static_cast<DeviceStream>(streams_.size() - 1);
  }

  DeviceStream IndexOf(DeviceStream stream) {
    if (stream != kDefaultStream) return stream;
    if (!default_) default_ = AddStream(false);
    return *default_;
  }

  void FinishDefault(DeviceStream stream) {
    if (stream != default_) return;
    while (!streams_[stream].work.empty() && RunOne()) {
    }
  }

  /// Does one piece of work of any stream that may run now. Returns whether there was one.
  bool RunOne() {
    std::vector<Stream*> able;
    for (Stream& stream : streams_) {
      if (stream.work.empty()) continue;
      const Work& first = stream.work.front();
      if (first.wanted == nullptr || *first.wanted) able.push_back(&stream);
    }
    if (able.empty()) return false;
    Stream& stream = *able[random_() % able.size()];
    const std::function<void()> run = std::move(stream.work.front().run);
    stream.work.pop_front();
    if (run) run();
    return true;
  }

  std::mt19937_64 random_;
  std::uint64_t calls_ = 0;
  std::uint64_t uploaded_bytes_ = 0;
  std::vector<std::string> faults_;
  std::map<std::byte*, Piece> pieces_;
  std::vector<Stream> streams_;
  std::vector<HostRead> host_reads_;  // for which the host has not waited
  std::optional<DeviceStream> default_;
  std::vector<Event> events_;
  Clock host_;
};

}  // namespace rhizome::testing
