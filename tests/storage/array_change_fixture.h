#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "rhizome/array_change.h"
#include "storage/io/files.h"
#include "storage/store_crash.h"

namespace rhizome::testing {

/// A store with the array "feat" of 300 rows, and job folders with arrays to publish.
class ArrayChangeTest : public ::testing::Test {
 protected:
  ArrayChangeTest() : path_(dir_ / "s") { EXPECT_OK(MakeStore(fs_, path_)); }

  /// Writes an array whose rows follow the formula into a new scratch folder.
  ArraySource Source(const std::string& name, ArrayLayout layout = ArrayLayout::kChunk) {
    const Path root = path_ / "scratch" / ("job" + std::to_string(made_.size()));
    EXPECT_OK(CreateDirectories(fs_, root));
    const CodecKind codec = layout == ArrayLayout::kRow ? CodecKind::kRaw : CodecKind::kZstd;
    auto written =
        WriteByFormula(fs_, root, MakeEntry(name, 300, 4, DataType::kFloat32, layout, codec, 128));
    EXPECT_OK(written);
    made_.push_back(std::make_unique<WrittenArray>(*std::move(written)));
    return {made_.back()->arrays, root, made_.back()->files};
  }

  template <typename Steps>
  Status Change(Steps steps) {
    return ArrayChange::Run(fs_, path_, {},
                            [&](ArrayChange& change) -> Status { return AsStatus(steps(change)); });
  }

  Status AddVersions(int count) {
    for (int i = 0; i < count; ++i) {
      const ArraySource source = Source("emb");
      RHIZOME_RETURN_IF_ERROR(Change([&](ArrayChange& c) { return c.AddVersion(source, "emb"); }));
    }
    return Status::Ok();
  }

  std::vector<std::string> Arrays() {
    std::vector<std::string> names;
    const auto store = Open();
    for (const ArrayEntry& array : store->manifest().arrays) names.push_back(array.name);
    return names;
  }
  std::unique_ptr<Store> Open() {
    auto store = Store::Open(fs_, path_, Store::Mode::kRead);
    EXPECT_OK(store);
    return *std::move(store);
  }
  std::string Meant(const std::string& reference) {
    const auto store = Open();
    const ArrayEntry* array = store->manifest().FindArray(reference);
    return array == nullptr ? "" : array->name;
  }
  bool OnDisk(const std::string& array) {
    return std::filesystem::exists(path_ / "generations/000001/arrays" / array);
  }

  TempDir dir_;
  FileSystem& fs_ = FileSystem::Posix();
  const Path path_;
  std::vector<std::unique_ptr<WrittenArray>> made_;
};

}  // namespace rhizome::testing
