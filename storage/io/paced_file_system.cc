#include "storage/io/paced_file_system.h"

#include <utility>

namespace rhizome {
inline namespace internal {
namespace {

class PacedWritableFile final : public WritableFile {
 public:
  PacedWritableFile(std::unique_ptr<WritableFile> file, IoPacer* pacer)
      : file_(std::move(file)), pacer_(pacer) {}

  Status Append(std::span<const std::byte> bytes) override {
    return AppendPaced(*file_, bytes, pacer_);
  }
  Status Sync() override {
    const IoPacer::Turn turn(pacer_);
    return file_->Sync();
  }
  Status Close() override { return file_->Close(); }
  std::uint64_t size_bytes() const override { return file_->size_bytes(); }
  const Path& path() const override { return file_->path(); }

 private:
  const std::unique_ptr<WritableFile> file_;
  IoPacer* const pacer_;
};

}  // namespace

Result<std::unique_ptr<WritableFile>> PacedFileSystem::CreateFile(const Path& path) {
  RHIZOME_ASSIGN_OR_RETURN(auto file, base().CreateFile(path));
  return std::make_unique<PacedWritableFile>(std::move(file), pacer_);
}

}  // namespace internal
}  // namespace rhizome
