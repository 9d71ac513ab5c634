#include "storage/maintenance/backup_format.h"

#include <fmt/format.h>

#include <algorithm>

#include "storage/array/manifest_format.h"
#include "storage/base/bytes.h"
#include "storage/catalog/delta_head.h"
#include "storage/store/store_files.h"

namespace rhizome {
inline namespace internal {

namespace {

constexpr std::string_view kMagic = "RZBACKUP";
constexpr std::uint32_t kVersion = 2;
constexpr std::size_t kHeadBytes = 8 + 4 + 4 + 16;
constexpr std::size_t kSealBytes = sizeof(std::uint32_t);
constexpr std::string_view kTextHead = "rhizome backup\nformat 1\nid ";

}  // namespace

std::vector<std::byte> EncodeBackupRecord(const BackupRecord& record, const StoreId& store_id) {
  const std::vector<std::byte> manifest = EncodeManifest(record.manifest, store_id);
  ByteWriter out;
  out.Bytes(std::as_bytes(std::span(kMagic)));
  // Version 1 does not store states.
  const bool states = record.base_state.known() && record.state.known();
  out.Number(states ? kVersion : 1U);
  out.Number(std::uint32_t{0});
  out.Bytes(store_id.bytes);
  out.Number(record.number);
  out.Number(static_cast<std::uint64_t>(record.unix_seconds));
  out.Number(record.sequence);
  out.Number(record.base_sequence);
  out.Number(record.delta_entries);
  out.Number(record.delta.size_bytes);
  out.Bytes(record.delta.xxh3);
  out.Number(record.delta.crc32c);
  out.Number<std::uint64_t>(manifest.size());
  out.Bytes(manifest);
  if (states) {
    WriteHistoryState(out, record.base_state);
    out.Number(record.last_delta);
    WriteHistoryState(out, record.state);
  }
  out.Number(Crc32c(out.bytes()));
  return out.Take();
}

Result<BackupRecord> DecodeBackupRecord(std::span<const std::byte> bytes, const StoreId& store_id) {
  if (bytes.size() < kHeadBytes + kSealBytes ||
      !std::ranges::equal(bytes.first(kMagic.size()), std::as_bytes(std::span(kMagic))))
    return Fail(Status::Corruption("offset 0, magic: not the record of a backup"));
  const std::size_t end = bytes.size() - kSealBytes;
  if (LoadLittle<std::uint32_t>(bytes.data() + end) != Crc32c(bytes.first(end)))
    return Fail(Status::Corruption(fmt::format("offset {}, seal: does not match the bytes", end)));
  ByteReader in(bytes.first(end));
  (void)in.Bytes("magic", kMagic.size());
  const auto version = in.Number<std::uint32_t>("version");
  if (version > kVersion)
    return Fail(Status::Unsupported(fmt::format(
        "backup format {} is newer than this build's {}; use a newer version of Rhizome", version,
        kVersion)));
  if (version == 0 || in.Number<std::uint32_t>("reserved") != 0)
    in.Refuse("version", "is invalid, or the bytes after it are");
  if (!std::ranges::equal(in.Bytes("store id", store_id.bytes.size()), store_id.bytes))
    in.Refuse("store id", "is the id of another store");
  BackupRecord record;
  record.number = in.Number<std::uint64_t>("number");
  record.unix_seconds = static_cast<std::int64_t>(in.Number<std::uint64_t>("time"));
  record.sequence = in.Number<std::uint64_t>("sequence");
  record.base_sequence = in.Number<std::uint64_t>("base sequence");
  record.delta_entries = in.Number<std::uint64_t>("delta entries");
  record.delta.size_bytes = in.Number<std::uint64_t>("delta length");
  const auto hash = in.Bytes("delta hash", record.delta.xxh3.size());
  std::copy(hash.begin(), hash.end(), record.delta.xxh3.begin());
  record.delta.crc32c = in.Number<std::uint32_t>("delta checksum");
  const std::size_t manifest = in.Count("manifest", 1, kMaxManifestBytes);
  const auto manifest_bytes = in.Bytes("manifest", manifest);
  if (version >= 2) {
    record.base_state = ReadHistoryState(in);
    record.last_delta = in.Number<std::uint64_t>("last commit");
    record.state = ReadHistoryState(in);
    if (!record.base_state.known() || !record.state.known()) in.Refuse("state", "is all zeros");
  }
  if (in.left() > 0) in.Refuse("end", "has extra bytes");
  RHIZOME_RETURN_IF_ERROR(in.status());
  RHIZOME_ASSIGN_OR_RETURN(record.manifest, DecodeManifest(manifest_bytes, store_id));
  return record;
}

void AppendDeltaEntry(std::vector<std::byte>& out, std::string_view key, std::string_view value) {
  for (const std::string_view part : {key, value}) {
    const auto length = static_cast<std::uint32_t>(part.size());
    const auto* bytes = reinterpret_cast<const std::byte*>(&length);
    out.insert(out.end(), bytes, bytes + sizeof(length));
    const auto* data = reinterpret_cast<const std::byte*>(part.data());
    out.insert(out.end(), data, data + part.size());
  }
}

std::string BackupFilePath(const Hash128& xxh3) {
  std::string hex;
  for (const std::byte byte : xxh3) hex += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return fmt::format("{}/{}/{}", kBackupFilesName, hex.substr(0, 2), hex);
}

std::string BackupText(const StoreId& id) {
  return fmt::format("{}{}\n", kTextHead, id.ToString());
}

Result<StoreId> ParseBackupText(std::string_view text) {
  constexpr std::string_view kAnyFormat = "rhizome backup\nformat ";
  if (!text.starts_with(kAnyFormat)) return Fail(Status::Corruption("not Rhizome's"));
  if (!text.starts_with(kTextHead) || !text.ends_with('\n')) {
    const std::string_view format = text.substr(kAnyFormat.size());
    if (!format.starts_with("1\n") && format.find('\n') != format.npos)
      return Fail(Status::Unsupported("has another format; use a newer version of Rhizome"));
    return Fail(Status::Corruption("is not the three lines that Rhizome writes"));
  }
  text.remove_prefix(kTextHead.size());
  text.remove_suffix(1);
  auto id = StoreId::Parse(text);
  if (!id) return Fail(Status::Corruption(id.error().message()));
  return id;
}

}  // namespace internal
}  // namespace rhizome
