#include "index/input/file_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "rhizome/ingest.h"

namespace rhizome {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kBzip2Magic = "BZh";

struct CompressedForm {
  Compression compression;
  std::string_view name;
  std::string_view extension;
  std::string_view magic;
};

constexpr auto kCompressed = std::to_array<CompressedForm>({
    {Compression::kGzip, "gzip", ".gz", "\x1f\x8b\x08"sv},
    {Compression::kZstd, "zstd", ".zst", "\x28\xb5\x2f\xfd"sv},
    {Compression::kBzip2, "bzip2", ".bz2", kBzip2Magic},
    {Compression::kXz, "xz", ".xz", "\xfd\x37zXZ\0"sv},
});

/// A kind of file that begins with `magic`, and how to make it readable. A text may begin with a
/// short word too: then `head` must also have a byte that no text has.
struct OtherForm {
  std::string_view magic;
  std::string_view what;
};

constexpr std::size_t kShortMagic = 4;
constexpr auto kOther = std::to_array<OtherForm>({
    {"PAR1"sv, "a Parquet file; read it in Python (rz.ingest takes pandas and pyarrow tables)"},
    {"ARROW1"sv, "an Arrow IPC (Feather) file; read it in Python with pyarrow, and ingest that"},
    {"\xff\xff\xff\xff"sv,
     "an Arrow IPC stream; read it in Python with pyarrow.ipc, and ingest that"},
    {"FEA1"sv, "a Feather file (version 1); read it in Python with pyarrow, and ingest that"},
    {"ORC"sv, "an ORC file; read it in Python with pyarrow, and ingest that"},
    {"Obj\x01"sv, "an Avro file; write its rows as CSV"},
    {"\x89HDF\r\n\x1a\n"sv, "an HDF5 file; read it in Python with h5py, and ingest its arrays"},
    {"SQLite format 3\0"sv, "an SQLite database; write its table as CSV (sqlite3 -csv)"},
    {"PK\x03\x04"sv, "a zip archive (also .npz, .xlsx and .pt are such); unpack it first"},
    {"7z\xbc\xaf\x27\x1c"sv, "a 7z archive; unpack it first"},
    {"\x04\x22\x4d\x18"sv, "compressed by lz4; decompress it with lz4 -d"},
    {"\x93NUMPY"sv, "a NumPy array (.npy); name it as one, with the extension .npy"},
    {"MATLAB 5.0"sv,
     "a MATLAB file; read it in Python with scipy.io.loadmat, and ingest its arrays"},
    {"\xff\xfe\0\0"sv, "UTF-32 text; convert it with iconv -f UTF-32 -t UTF-8"},
    {"\0\0\xfe\xff"sv, "UTF-32 text; convert it with iconv -f UTF-32 -t UTF-8"},
    {"\xff\xfe"sv, "UTF-16 text; convert it with iconv -f UTF-16 -t UTF-8"},
    {"\xfe\xff"sv, "UTF-16 text; convert it with iconv -f UTF-16 -t UTF-8"},
});

std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string LowerExtension(const Path& path) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + ('a' - 'A')) : letter;
  });
  return extension;
}

/// Returns whether `head` has a byte that UTF-8 text does not have.
bool HasBinary(std::string_view head) {
  return std::any_of(head.begin(), head.end(), [](char letter) {
    const auto byte = static_cast<unsigned char>(letter);
    return (byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || byte >= 0xf5 ||
           byte == 0xc0 || byte == 0xc1;
  });
}

/// Returns whether every second byte is zero, as in UTF-16 text of Latin letters.
bool IsHalfZeros(std::string_view head) {
  std::array<std::size_t, 2> zeros = {};
  for (std::size_t i = 0; i < head.size(); ++i) zeros[i % 2] += head[i] == '\0' ? 1 : 0;
  return head.size() >= 4 && std::min(zeros[0], zeros[1]) == 0 &&
         std::max(zeros[0], zeros[1]) >= head.size() / 2;
}

/// Returns whether a head that begins with bzip2's magic continues with the size of a block and the
/// mark of the first block or of an empty stream, as far as it extends. A text may begin with the
/// magic, too.
bool ContinuesAsBzip2(std::string_view head) {
  const std::string_view rest = head.substr(kBzip2Magic.size());
  if (rest.empty()) return true;
  const std::string_view mark = rest.substr(1, 6);
  return rest[0] >= '1' && rest[0] <= '9' &&
         ("\x31\x41\x59\x26\x53\x59"sv.starts_with(mark) ||
          "\x17\x72\x45\x38\x50\x90"sv.starts_with(mark));
}

/// The mark's first byte is needed to distinguish bzip2 from text.
constexpr std::size_t kMinBzip2Bytes = 5;

}  // namespace

std::string_view CompressionName(Compression compression) {
  for (const CompressedForm& form : kCompressed)
    if (form.compression == compression) return form.name;
  return "";
}

Compression CompressionOf(std::span<const std::byte> head) {
  const std::string_view text = AsText(head);
  for (const CompressedForm& form : kCompressed)
    if (text.starts_with(form.magic) && (form.compression != Compression::kBzip2 ||
                                         (text.size() >= kMinBzip2Bytes && ContinuesAsBzip2(text))))
      return form.compression;
  // A skippable frame of zstd.
  if (text.size() >= 4 && text.substr(1, 3) == "\x2a\x4d\x18" &&
      (static_cast<unsigned char>(text[0]) & 0xF0U) == 0x50)
    return Compression::kZstd;
  return Compression::kNone;
}

Compression CutOffCompression(const Path& path, std::span<const std::byte> head) {
  const std::string extension = LowerExtension(path);
  const std::string_view text = AsText(head);
  for (const CompressedForm& form : kCompressed) {
    const bool cut_off = form.magic.starts_with(text) ||
                         (form.compression == Compression::kBzip2 && text.size() < kMinBzip2Bytes &&
                          text.starts_with(form.magic) && ContinuesAsBzip2(text));
    if (form.extension == extension && cut_off) return form.compression;
  }
  return Compression::kNone;
}

std::optional<std::string> RefuseAsText(std::span<const std::byte> head) {
  const std::string_view text = AsText(head);
  for (const OtherForm& form : kOther)
    if (text.starts_with(form.magic) && (form.magic.size() > kShortMagic || HasBinary(text)))
      return fmt::format("is {}", form.what);
  if (const Compression inner = CompressionOf(head); inner != Compression::kNone)
    return fmt::format("is compressed twice: inside is {} data", CompressionName(inner));
  if (IsHalfZeros(text))
    return "is UTF-16 text without a byte order mark; convert it with iconv -f UTF-16LE -t UTF-8";
  if (text.find('\0') != text.npos)
    return "is not text: it has zero bytes; inputs are text, .npy files and Zarr arrays";
  return std::nullopt;
}

bool IsNpy(std::span<const std::byte> head) { return AsText(head).starts_with("\x93NUMPY"); }

std::string ContentExtension(const Path& path) {
  const std::string extension = LowerExtension(path);
  const bool compressed =
      std::any_of(kCompressed.begin(), kCompressed.end(),
                  [&](const CompressedForm& form) { return form.extension == extension; });
  return compressed ? LowerExtension(path.stem()) : extension;
}

namespace {

constexpr auto kDelimiters = std::to_array<std::pair<Delimiter, std::string_view>>({
    {Delimiter::kTab, "tab"},
    {Delimiter::kComma, "comma"},
    {Delimiter::kSemicolon, "semicolon"},
    {Delimiter::kPipe, "pipe"},
    {Delimiter::kBlanks, "blanks"},
});

}  // namespace

std::string_view DelimiterName(Delimiter delimiter) {
  for (const auto& [known, name] : kDelimiters)
    if (known == delimiter) return name;
  return "none";
}

std::optional<Delimiter> ParseDelimiter(std::string_view name) {
  for (const auto& [known, known_name] : kDelimiters)
    if (known_name == name) return known;
  return std::nullopt;
}

}  // namespace rhizome
