#include "storage/catalog/catalog_seal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "storage/base/bytes.h"
#include "storage/base/hash.h"
#include "storage/base/little_endian.h"
#include "storage/base/mutant.h"
#include "storage/catalog/catalog_manifest.h"
#include "storage/io/files.h"

namespace rhizome {
inline namespace internal {
namespace {

using FileBytes = std::vector<std::byte>;

constexpr std::string_view kSealName = "SEAL";
constexpr std::string_view kSealMagic = "RZCSEAL1";
constexpr std::uint64_t kMaxSealBytes = 4096;

/// Returns the bytes of a file; nullopt if the file does not exist.
Result<std::optional<FileBytes>> ReadIfThere(FileSystem& fs, const Path& path, std::uint64_t max) {
  auto bytes = ReadWholeFile(fs, path, max);
  if (!bytes && bytes.error().code() == StatusCode::kNotFound) return std::nullopt;
  if (!bytes) return Fail(bytes.error());
  return std::optional(*std::move(bytes));
}

FileBytes EncodeSeal(std::string_view name, const FileBytes& manifest) {
  ByteWriter out;
  out.Bytes(std::as_bytes(std::span(kSealMagic)));
  out.Number(static_cast<std::uint64_t>(manifest.size()));
  out.Bytes(Xxh3(manifest));
  out.String(name);
  out.Number(Crc32c(out.bytes()));
  return out.Take();
}

/// Returns whether the seal is complete, not torn.
bool IsWhole(const FileBytes& seal) {
  if (seal.size() < kSealMagic.size() + sizeof(std::uint32_t)) return false;
  const std::size_t end = seal.size() - sizeof(std::uint32_t);
  return LoadLittle<std::uint32_t>(seal.data() + end) == Crc32c(std::span(seal).first(end));
}

/// Returns whether the seal matches the current catalogue. A catalogue without CURRENT was never
/// completed, or is being removed; it counts as a match.
Result<bool> Fits(FileSystem& fs, const Path& catalog, const FileBytes& seal) {
  RHIZOME_ASSIGN_OR_RETURN(const auto current, ReadIfThere(fs, catalog / "CURRENT", kMaxSealBytes));
  if (!current) return true;
  const std::string name = ManifestNameIn(*current);
  if (!name.starts_with("MANIFEST-") || !CheckName("file", name).ok()) return false;
  RHIZOME_ASSIGN_OR_RETURN(const auto manifest,
                           ReadIfThere(fs, catalog / name, kMaxCatalogManifestBytes));
  return manifest && EncodeSeal(name, *manifest) == seal;
}

}  // namespace

Status CheckCatalogSeal(FileSystem& fs, const Path& catalog) {
  RHIZOME_ASSIGN_OR_RETURN(auto seal, ReadIfThere(fs, catalog / kSealName, kMaxSealBytes));
  while (seal && IsWhole(*seal) && !RHIZOME_MUTANT("seal is not compared")) {
    const auto fits = Fits(fs, catalog, *seal);
    if (!fits && fits.error().code() != StatusCode::kCorruption) return fits.error();
    if (fits.value_or(false)) return Status::Ok();
    // A writer may have changed the catalogue in the meantime. It breaks the seal first, and no two
    // seals are equal, so the catalogue is damaged if the seal is still the same.
    RHIZOME_ASSIGN_OR_RETURN(auto again, ReadIfThere(fs, catalog / kSealName, kMaxSealBytes));
    if (again == seal)
      return Status::Corruption(
          fmt::format("catalogue '{}': CURRENT, or the MANIFEST that it names, changed after the "
                      "catalogue was closed (SEAL)",
                      catalog.string()));
    seal = std::move(again);
  }
  return Status::Ok();
}

Status BreakCatalogSeal(FileSystem& fs, const Path& catalog) {
  const Status removed = fs.RemoveFile(catalog / kSealName);
  if (removed.code() == StatusCode::kNotFound) return Status::Ok();
  RHIZOME_RETURN_IF_ERROR(removed);
  return fs.SyncDirectory(catalog);
}

Status SealCatalog(FileSystem& fs, const Path& catalog) {
  RHIZOME_ASSIGN_OR_RETURN(const auto current, ReadIfThere(fs, catalog / "CURRENT", kMaxSealBytes));
  if (!current) return Status::Ok();
  const std::string name = ManifestNameIn(*current);
  RHIZOME_ASSIGN_OR_RETURN(const FileInfo info, fs.Stat(catalog / name));
  if (info.size_bytes > kMaxCatalogManifestBytes) return Status::Ok();
  RHIZOME_ASSIGN_OR_RETURN(const FileBytes manifest,
                           ReadWholeFile(fs, catalog / name, kMaxCatalogManifestBytes));
  RHIZOME_RETURN_IF_ERROR(WriteWholeFile(fs, catalog / kSealName, EncodeSeal(name, manifest)));
  return fs.SyncDirectory(catalog);
}

}  // namespace internal
}  // namespace rhizome
