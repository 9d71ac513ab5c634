#pragma once

#include <memory>

#include "storage/catalog/catalog_disk.h"
#include "testing/fake_file_system.h"

namespace rhizome::testing {

/// Puts RocksDB's files on a fake disk: each of its operations is an operation of the disk, and is
/// counted, failed and lost like the operations of the store around it. RocksDB uses its own
/// threads. Ownership: `disk` must outlive the result and every catalogue that was opened on it.
std::unique_ptr<CatalogDisk> MakeRocksDisk(FakeFileSystem& disk);

/// A fake disk that holds whole stores, including their catalogues.
class StoreDisk final : public FakeFileSystem {
 public:
  StoreDisk() : rocks_(MakeRocksDisk(*this)) {}
  explicit StoreDisk(const FakeImage& image)
      : FakeFileSystem(image), rocks_(MakeRocksDisk(*this)) {}
  CatalogDisk* catalog_disk() override { return rocks_.get(); }

 private:
  const std::unique_ptr<CatalogDisk> rocks_;
};

}  // namespace rhizome::testing
