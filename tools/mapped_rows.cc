#include "mapped_rows.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace rhizome {

Result<MappedRows> MappedRows::Open(const ChunkArray& array) {
  MappedRows made(array.entry());
  for (std::uint64_t chunk = 0; chunk < array.entry().chunk_count(); ++chunk) {
    const FileEntry& entry = array.ChunkFile(chunk);
    const Path path = array.root() / entry.path;
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return Fail(Status::FromErrno(errno, "open " + path.string()));
    ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    void* const memory = ::mmap(nullptr, entry.size_bytes, PROT_READ, MAP_SHARED, file, 0);
    const int error = errno;
    ::close(file);
    if (memory == MAP_FAILED) return Fail(Status::FromErrno(error, "map " + path.string()));
    ::madvise(memory, entry.size_bytes, MADV_RANDOM);
    made.chunks_.emplace_back(static_cast<std::byte*>(memory), entry.size_bytes);
  }
  return made;
}

MappedRows::~MappedRows() {
  for (const std::span<std::byte> chunk : chunks_) ::munmap(chunk.data(), chunk.size());
}

void MappedRows::Gather(std::span<const std::int64_t> rows, std::span<std::byte> out) const {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = static_cast<std::uint64_t>(rows[i]);
    std::memcpy(out.data() + i * row_bytes_,
                chunks_[row / chunk_rows_].data() + row % chunk_rows_ * row_bytes_, row_bytes_);
  }
}

}  // namespace rhizome
