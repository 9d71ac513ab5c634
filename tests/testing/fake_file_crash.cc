#include <algorithm>
#include <optional>
#include <random>
#include <set>

#include "rhizome/types.h"
#include "storage/base/hash.h"
#include "testing/fake_file_state.h"

// Computes the state of a fake disk after a power cut. For each directory, the crash chooses which
// unsynced changes of names survive; for each file it chooses the surviving bytes, as the mode says
// (FakeFileSystem::CrashMode). The result becomes the durable state.

namespace rhizome::testing {
namespace {

using Mode = FakeFileSystem::CrashMode;
using Random = std::mt19937_64;

// A disk writes each sector atomically.
constexpr std::size_t kSectorBytes = 512;

void Apply(const FakeWrite& write, std::vector<std::byte>& bytes) {
  if (write.cut) bytes.resize(write.offset_bytes);
  const std::size_t end = write.offset_bytes + write.bytes.size();
  if (end > bytes.size()) bytes.resize(end);  // zeros where nothing was written before
  std::copy(write.bytes.begin(), write.bytes.end(),
            bytes.begin() + static_cast<std::ptrdiff_t>(write.offset_bytes));
}

/// Returns the contents of a file after its last sync and after each later write, oldest first.
std::vector<std::vector<std::byte>> Moments(const FakeNode& file) {
  std::vector<std::vector<std::byte>> moments = {file.durable_bytes};
  for (const FakeWrite& write : file.unsynced) {
    moments.push_back(moments.back());
    Apply(write, moments.back());
  }
  return moments;
}

/// Mixes the contents of a file at several moments, none before number `first`. A page is written
/// as it is at that time, so each sector, and the length, comes from one of the moments. With
/// `holes` any sector may come from any moment, because the kernel writes pages in any order;
/// otherwise no sector comes from a later moment than a sector before it.
std::vector<std::byte> Mix(const std::vector<std::vector<std::byte>>& moments, std::size_t first,
                           bool holes, Random& random) {
  std::size_t last = moments.size() - 1;
  const auto draw = [&] { return first + random() % (last - first + 1); };
  std::vector<std::byte> bytes(moments[draw()].size());
  for (std::size_t at = 0; at < bytes.size(); at += kSectorBytes) {
    const std::size_t drawn = draw();
    if (!holes) last = drawn;
    const std::vector<std::byte>& moment = moments[drawn];
    if (at >= moment.size()) continue;
    const std::size_t end = std::min({at + kSectorBytes, bytes.size(), moment.size()});
    std::copy(moment.begin() + static_cast<std::ptrdiff_t>(at),
              moment.begin() + static_cast<std::ptrdiff_t>(end),
              bytes.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return bytes;
}

/// Returns a file with all of its writes. If the last write to the disk was to this file, only some
/// sectors of that write are there.
std::vector<std::byte> TornAt(const FakeNode& file, std::uint64_t last, Random& random) {
  if (file.unsynced.empty() || file.unsynced.back().operation != last) return file.bytes;
  const auto moments = Moments(file);
  return Mix(moments, moments.size() - 2, /*holes=*/false, random);
}

FakeNames SomeNames(const FakeNode& directory, Mode mode, Random& random) {
  if (mode == Mode::kDropUnsynced) return directory.durable_names;
  const bool any = mode == Mode::kRandom || mode == Mode::kHoles || mode == Mode::kNamesReordered;
  if (!any && mode != Mode::kNamesUndone) return directory.names;
  FakeNames left = directory.durable_names;
  for (const FakeNaming& naming : directory.unsynced_names) {
    if (any ? random() % 2 == 0 : naming.replaces) continue;
    for (const auto& [name, node] : naming.names) {
      if (node == nullptr) {
        left.erase(name);
      } else {
        left[name] = node;
      }
    }
  }
  return left;
}

/// Applies a crash to one tree.
class Crash {
 public:
  Crash(FakeNode& root, Mode mode, std::uint64_t seed) : mode_(mode), random_(seed) {
    if (mode == Mode::kTornLast) FindLast(root);
  }

  void Run(FakeNode& directory) {
    directory.names = SomeNames(directory, mode_, random_);
    directory.MakeDurable();
    for (const auto& [name, child] : directory.names) {
      if (!seen_.insert(child.get()).second) continue;
      if (child->is_directory) {
        Run(*child);
        continue;
      }
      child->bytes = Surviving(*child);
      child->MakeDurable();
      child->shared_locks = 0;
      child->exclusive_lock = false;
    }
  }

 private:
  void FindLast(const FakeNode& directory) {
    for (const auto& [name, child] : directory.names) {
      if (child->is_directory) FindLast(*child);
      if (!child->unsynced.empty()) last_ = std::max(last_, child->unsynced.back().operation);
    }
  }

  std::vector<std::byte> Surviving(const FakeNode& file) {
    switch (mode_) {
      case Mode::kDropUnsynced:
      case Mode::kZeroLength:
        return file.durable_bytes;
      case Mode::kRandom:
      case Mode::kHoles:
        return Mix(Moments(file), 0, mode_ == Mode::kHoles, random_);
      case Mode::kTornLast:
        return TornAt(file, last_, random_);
      case Mode::kNamesReordered:
        return random_() % 2 == 0 ? file.bytes : file.durable_bytes;
      default:
        return file.bytes;
    }
  }

  const Mode mode_;
  Random random_;
  std::uint64_t last_ = 0;
  std::set<FakeNode*> seen_;
};

NodePtr Copy(const NodePtr& node, std::map<const FakeNode*, NodePtr>& copies);

FakeNames CopyNames(const FakeNames& names, std::map<const FakeNode*, NodePtr>& copies) {
  FakeNames out;
  for (const auto& [name, node] : names) out[name] = node ? Copy(node, copies) : nullptr;
  return out;
}

NodePtr Copy(const NodePtr& node, std::map<const FakeNode*, NodePtr>& copies) {
  NodePtr& copy = copies[node.get()];
  if (copy != nullptr) return copy;
  copy = std::make_shared<FakeNode>(*node);
  const NodePtr out = copy;
  out->names = CopyNames(node->names, copies);
  out->durable_names = CopyNames(node->durable_names, copies);
  for (FakeNaming& naming : out->unsynced_names) naming.names = CopyNames(naming.names, copies);
  return out;
}

void HashTree(const FakeNode& directory, StreamHash& hash) {
  const auto text = [&hash](std::string_view bytes) {
    const std::uint64_t size = bytes.size();
    hash.Update(std::as_bytes(std::span(&size, 1)));
    hash.Update(std::as_bytes(std::span(bytes)));
  };
  for (const auto& [name, child] : directory.names) {
    text(child->is_directory ? "folder" : "file");
    text(name);
    if (child->is_directory) {
      HashTree(*child, hash);
      text("end");
    } else {
      text({reinterpret_cast<const char*>(child->bytes.data()), child->bytes.size()});
    }
  }
}

}  // namespace

void FakeNode::Write(FakeWrite write) {
  Apply(write, bytes);
  unsynced.push_back(std::move(write));
}

void FakeNode::Rename(FakeNaming naming) {
  for (const auto& [name, node] : naming.names) {
    if (node == nullptr) {
      names.erase(name);
    } else {
      names[name] = node;
    }
  }
  unsynced_names.push_back(std::move(naming));
}

void FakeNode::MakeDurable() {
  durable_bytes = bytes;
  unsynced.clear();
  durable_names = names;
  unsynced_names.clear();
}

void CrashTree(FakeNode& directory, Mode mode, std::uint64_t seed) {
  Crash(directory, mode, seed).Run(directory);
}

NodePtr CopyTree(const NodePtr& root) {
  std::map<const FakeNode*, NodePtr> copies;
  return Copy(root, copies);
}

Hash128 FakeImage::Hash() const {
  StreamHash hash;
  HashTree(*root, hash);
  return hash.xxh3();
}

}  // namespace rhizome::testing
