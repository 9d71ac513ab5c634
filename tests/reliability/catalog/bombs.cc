// Makes small inputs that claim huge sizes, for all readers (AllBombs), and reads each of them in a
// child process with limited memory and CPU time (Explode). The sections of this file: encoded
// chunks, files of users (npy, compressed streams, text), zarr.json, files of a store (sections,
// manifests, indexes, records), and the child processes.

#include "reliability/catalog/bombs.h"

#include <bzlib.h>
#include <fmt/format.h>
#include <lzma.h>
#include <malloc.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string_view>

#include "index/base/memory_sink.h"
#include "index/delta/delta_record.h"
#include "index/ids/id_table.h"
#include "index/ingest/array_file.h"
#include "index/ingest/edge_file.h"
#include "index/ingest/ingest_context.h"
#include "index/input/npy.h"
#include "index/topology/adjacency.h"
#include "index/topology/adjacency_format.h"
#include "index/topology/section_struct.h"
#include "index/topology/vertex_ids.h"
#include "index/topology/vertex_ids_format.h"
#include "index/topology/vertex_order.h"
#include "index/topology/vertex_order_format.h"
#include "rhizome/manifest.h"
#include "storage/array/codec.h"
#include "storage/array/manifest_format.h"
#include "storage/array/shard_index.h"
#include "storage/array/zarr_format.h"
#include "storage/array/zarr_source.h"
#include "storage/base/hash.h"
#include "storage/base/little_endian.h"
#include "storage/catalog/catalog_table.h"
#include "storage/maintenance/backup_format.h"
#include "storage/section/job_log.h"
#include "storage/section/section_format.h"
#include "testing/child_process.h"
#include "testing/fake_file_system.h"
#include "testing/testing.h"

namespace rhizome::testing {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::uint64_t kHuge[] = {std::uint64_t{1} << 31, std::uint64_t{1} << 40,
                                   std::uint64_t{1} << 62, ~std::uint64_t{0}};

Bytes BytesOf(std::string_view text) {
  const auto raw = std::as_bytes(std::span(text));
  return {raw.begin(), raw.end()};
}

template <typename T>
Status OutcomeOf(const Result<T>& result) {
  return result ? Status::Ok() : result.error();
}

// --- Encoded chunks ---

constexpr std::size_t kRawBytes = std::size_t{64} << 10;

/// Decodes `frame`, followed by a correct checksum, as a chunk of kRawBytes.
Status DecodeFrame(CodecKind kind, Bytes frame) {
  const std::uint32_t crc = Crc32c(frame);
  frame.resize(frame.size() + sizeof(crc));
  StoreLittle(frame.data() + frame.size() - sizeof(crc), crc);
  Bytes out(kRawBytes);
  return DecodeChunk({.kind = kind, .level = 1, .element_bytes = 4}, frame, out);
}

/// Returns a zstd frame with the given head and blocks that each repeat one byte 128 Ki times.
Bytes ZstdBomb(Bytes head, int blocks) {
  Bytes frame = BytesOf("\x28\xB5\x2F\xFD");
  frame.insert(frame.end(), head.begin(), head.end());
  for (int i = 0; i < blocks; ++i) {
    const std::uint32_t block = (std::uint32_t{128} << 10) << 3U | 2U | (i + 1 == blocks ? 1U : 0U);
    for (const unsigned shift : {0U, 8U, 16U})
      frame.push_back(static_cast<std::byte>(block >> shift & 0xFFU));
    frame.push_back(std::byte{'a'});
  }
  return frame;
}

void AddFrames(std::vector<Bomb>& bombs) {
  for (const std::uint64_t claimed : kHuge) {
    Bytes head(9);  // single segment, with a size field of 8 bytes
    head[0] = std::byte{0xE0};
    StoreLittle(head.data() + 1, claimed);
    bombs.push_back({fmt::format("zstd frame that claims {} bytes", claimed), kRawBytes,
                     [head] { return DecodeFrame(CodecKind::kZstd, ZstdBomb(head, 2)); }});
  }
  for (const int window : {0x00, 0x50, 0xA8, 0xF8}) {
    for (const int blocks : {1, 4096, 16000}) {
      const Bytes head = {std::byte{0}, static_cast<std::byte>(window)};
      bombs.push_back(
          {fmt::format("zstd frame without a size, window {:#x}, of {} blocks", window, blocks),
           kRawBytes, [=] { return DecodeFrame(CodecKind::kZstd, ZstdBomb(head, blocks)); }});
    }
  }
  struct Change {
    const char* field;
    std::size_t at;
    std::vector<std::uint32_t> values;
    std::size_t bytes;
  };
  const std::vector<Change> changes = {
      {"decoded bytes", 4, {0, 1, 65535, 65537, 0x7FFFFFFF, 0xFFFFFFFF}, 4},
      {"block bytes", 8, {0, 65537, 0x7FFFFFFF, 0xFFFFFFFF}, 4},
      {"frame bytes", 12, {0, 16, 0x7FFFFFFF, 0xFFFFFFFF}, 4},
      {"version", 0, {0, 1, 3, 255}, 1},
      {"codec's version", 1, {0, 2, 255}, 1},
      {"codec",
       2,
       {0x00, 0x41, 0x61, 0xA1, 0xE1, 0x09},
       1},  // blosclz, snappy, zlib, none, reserved
      {"type size", 3, {0}, 1}};
  for (const CodecKind kind : {CodecKind::kBloscLz4, CodecKind::kBloscZstd}) {
    Bytes good(kRawBytes);
    for (std::size_t i = 0; i < good.size(); ++i) good[i] = static_cast<std::byte>(i / 64);
    Bytes frame = *EncodeChunk({.kind = kind, .level = 5, .element_bytes = 4}, good);
    frame.resize(frame.size() - 4);
    for (const Change& change : changes) {
      for (const std::uint32_t value : change.values) {
        Bytes changed = frame;
        if (change.bytes == 1) changed[change.at] = static_cast<std::byte>(value);
        if (change.bytes == 4) StoreLittle(changed.data() + change.at, value);
        bombs.push_back(
            {fmt::format("{} frame whose {} is {:#x}", CodecName(kind), change.field, value),
             kRawBytes, [=] { return DecodeFrame(kind, changed); }});
      }
    }
  }
}

// --- Files of users ---

/// Reads a file as an array of floats.
Status ReadArray(FileSystem& fs, const Path& path, std::uint64_t dim = 0) {
  const IngestOptions options;
  const JobControl control;
  IngestContext context(fs, options, control, /*spills=*/false);
  return OutcomeOf(ReadArrayFile(context, {.name = "x", .path = path, .dim = dim}));
}

Status ReadEdgesOf(FileSystem& fs, const Path& path) {
  IngestOptions options;
  options.edges = {EdgeFile(path)};
  const JobControl control;
  RHIZOME_ASSIGN_OR_RETURN(const InputPlan plan, Sniff(fs, options));
  IngestContext context(fs, plan, control, /*spills=*/false);
  IdTable ids(IdType::kAuto);
  return OutcomeOf(ReadEdges(context, ids, nullptr));
}

Status WithFile(const Path& path, const Bytes& bytes, Status (*read)(FileSystem&, const Path&)) {
  FakeFileSystem fs;
  if (Status written = WriteWholeFile(fs, path, bytes); !written.ok()) std::abort();
  return read(fs, path);
}

Status ReadFloats(FileSystem& fs, const Path& path) { return ReadArray(fs, path); }

Bytes NpyFile(std::string_view descr, std::string_view shape) {
  std::string text =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", descr, shape);
  text.resize(128 - 10 - 1, ' ');
  Bytes bytes = BytesOf(std::string("\x93NUMPY\x01\x00", 8));
  bytes.push_back(static_cast<std::byte>(text.size() + 1));
  bytes.push_back(std::byte{0});
  const Bytes body = BytesOf(text + "\n");
  bytes.insert(bytes.end(), body.begin(), body.end());
  bytes.resize(bytes.size() + 1024);
  return bytes;
}

void AddNpy(std::vector<Bomb>& bombs) {
  for (const char* const shape :
       {"(2147483648,)", "(1099511627776,)", "(4611686018427387904,)", "(18446744073709551615,)",
        "(99999999999999999999999,)", "(2147483648, 2147483648)", "(1099511627776, 1)",
        "(1, 1099511627776)", "(1099511627776, 2)", "(1, 2, 3, 4, 5, 6, 7, 8, 9)"}) {
    for (const char* const descr : {"<f4", "|u1", "<i8"}) {
      bombs.push_back({fmt::format(".npy of {} with shape {}", descr, shape), 0,
                       [=] { return WithFile("/a.npy", NpyFile(descr, shape), ReadFloats); }});
    }
    bombs.push_back({fmt::format(".npy of edges with shape {}", shape), 0,
                     [=] { return WithFile("/a.npy", NpyFile("<i8", shape), ReadEdgesOf); }});
  }
  Bytes header = BytesOf(std::string("\x93NUMPY\x02\x00\xFF\xFF\xFF\xFF{", 13));
  bombs.push_back(
      {".npy with a header of 4 GiB", 0, [=] { return WithFile("/a.npy", header, ReadFloats); }});
  for (const char* const open : {"(", "[", "{'a':"}) {
    bombs.push_back({fmt::format(".npy whose header opens {} 12,000 times", open), 0, [=] {
                       std::string text;
                       for (int i = 0; i < 12'000; ++i) text += open;
                       Bytes bytes = BytesOf(std::string("\x93NUMPY\x01\x00", 8));
                       bytes.push_back(static_cast<std::byte>(text.size() % 256));
                       bytes.push_back(static_cast<std::byte>(text.size() / 256 % 256));
                       const Bytes body = BytesOf(text);
                       bytes.insert(bytes.end(), body.begin(), body.end());
                       return WithFile("/a.npy", bytes, ReadFloats);
                     }});
  }
}

constexpr std::size_t kSwollenBytes = std::size_t{64} << 20;

/// Repeats `piece` up to 64 MiB and compresses it with gzip.
Bytes Gzip(std::string_view piece) {
  Bytes out(std::size_t{4} << 20);
  z_stream stream{};
  if (deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) std::abort();
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  for (std::size_t done = 0; done < kSwollenBytes; done += piece.size()) {
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
    stream.avail_in = static_cast<uInt>(piece.size());
    const bool last = done + piece.size() >= kSwollenBytes;
    if (deflate(&stream, last ? Z_FINISH : Z_NO_FLUSH) == Z_STREAM_ERROR) std::abort();
  }
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

/// Returns a zstd frame that needs a window of 2 GiB.
Bytes WideZstd() { return ZstdBomb({std::byte{0}, std::byte{0xA8}}, 64); }

Bytes Repeated(const Bytes& piece, std::size_t times) {
  Bytes out;
  for (std::size_t i = 0; i < times; ++i) out.insert(out.end(), piece.begin(), piece.end());
  return out;
}

/// Compresses `piece` with bzip2, and repeats the stream up to 64 MiB of text.
Bytes Bzip2(std::string_view piece) {
  Bytes stream(piece.size() + 1000);
  auto bytes = static_cast<unsigned>(stream.size());
  if (BZ2_bzBuffToBuffCompress(reinterpret_cast<char*>(stream.data()), &bytes,
                               const_cast<char*>(piece.data()), static_cast<unsigned>(piece.size()),
                               9, 0, 0) != BZ_OK)
    std::abort();
  stream.resize(bytes);
  return Repeated(stream, kSwollenBytes / piece.size());
}

/// The same with xz.
Bytes Xz(std::string_view piece) {
  Bytes stream(lzma_stream_buffer_bound(piece.size()));
  std::size_t bytes = 0;
  if (lzma_easy_buffer_encode(0, LZMA_CHECK_CRC64, nullptr,
                              reinterpret_cast<const std::uint8_t*>(piece.data()), piece.size(),
                              reinterpret_cast<std::uint8_t*>(stream.data()), &bytes,
                              stream.size()) != LZMA_OK)
    std::abort();
  stream.resize(bytes);
  return Repeated(stream, kSwollenBytes / piece.size());
}

/// Returns the start of an xz stream that needs a dictionary of 4 GiB.
Bytes WideXz() {
  return BytesOf(
      {"\xfd\x37\x7a\x58\x5a\x00\x00\x04\xe6\xd6\xb4\x46\x02\x00\x21\x01\x28\x00\x00\x00\xe6\xa0"
       "\x11\xb3",
       24});
}

/// Reads a file that is 64 MiB of one byte on disk: a line without an end.
Status ReadEndless(const char* name, char byte) {
  const TempDir dir;
  const Path path = dir / name;
  std::ofstream out(path, std::ios::binary);
  const std::string piece(std::size_t{1} << 16, byte);
  for (std::size_t done = 0; done < kSwollenBytes; done += piece.size()) out << piece;
  out.close();
  return ReadEdgesOf(FileSystem::Posix(), path);
}

void AddStreams(std::vector<Bomb>& bombs) {
  const std::string zeros(std::size_t{1} << 16, '\0');
  std::string rows;
  while (rows.size() < (std::size_t{1} << 16)) rows += "1\n";
  for (const char* const name : {"/e.tsv.gz", "/e.csv.gz"}) {
    bombs.push_back({fmt::format("{}: 64 MiB of zeros in one line", name), 0,
                     [=] { return WithFile(name, Gzip(zeros), ReadEdgesOf); }});
    bombs.push_back({fmt::format("{}: 64 MiB of lines of one field", name), 0,
                     [=] { return WithFile(name, Gzip(rows), ReadEdgesOf); }});
  }
  for (const std::string_view piece : {std::string_view(zeros), std::string_view(rows)}) {
    const char first = piece[0];
    const std::string text(piece);
    bombs.push_back({fmt::format("bzip2 of 64 MiB that begin with {:#x}", first), 0,
                     [=] { return WithFile("/e.tsv", Bzip2(text), ReadEdgesOf); }});
    bombs.push_back({fmt::format("xz of 64 MiB that begin with {:#x}", first), 0,
                     [=] { return WithFile("/e.tsv", Xz(text), ReadEdgesOf); }});
  }
  bombs.push_back({"xz with a dictionary of 4 GiB", 0,
                   [=] { return WithFile("/e.tsv", WideXz(), ReadEdgesOf); }});
  bombs.push_back({"triplets of 64 MiB of zeros", 0, [=] {
                     FakeFileSystem fs;
                     if (!WriteWholeFile(fs, "/t.tsv.gz", Gzip(zeros)).ok()) std::abort();
                     return ReadArray(fs, "/t.tsv.gz", 4);
                   }});
  bombs.push_back({"triplets far apart", 0, [] {
                     FakeFileSystem fs;
                     const Bytes text = BytesOf("0\t0\t1\n1099511627776\t0\t1\n");
                     if (!WriteWholeFile(fs, "/t.tsv", text).ok()) std::abort();
                     return ReadArray(fs, "/t.tsv", 4);
                   }});
  for (const char* const name : {"/e.tsv.zst", "/e.csv.zst", "/a.npy.zst"}) {
    bombs.push_back({fmt::format("{}: a window of 2 GiB", name), 0, [=] {
                       return WithFile(name, WideZstd(),
                                       std::string_view(name).find("npy") == std::string::npos
                                           ? ReadEdgesOf
                                           : ReadFloats);
                     }});
  }
  for (const char* const name : {"e.tsv", "e.csv"}) {
    for (const char byte : {'\0', 'x', '"', ','}) {
      if (byte == ',' && std::string_view(name) == "e.tsv") continue;
      bombs.push_back({fmt::format("{}: 64 MiB of byte {}", name, static_cast<int>(byte)), 0,
                       [=] { return ReadEndless(name, byte); }});
    }
  }
}

// --- zarr.json ---

std::string ZarrText(std::string_view shape, std::string_view chunk, std::string_view codecs) {
  return fmt::format(
      R"({{"zarr_format": 3, "node_type": "array", "shape": [{}], "data_type": "float32", )"
      R"("chunk_grid": {{"name": "regular", "configuration": {{"chunk_shape": [{}]}}}}, )"
      R"("chunk_key_encoding": {{"name": "default", "configuration": {{"separator": "/"}}}}, )"
      R"("fill_value": 0, "codecs": [{}]}})",
      shape, chunk, codecs);
}

void AddZarr(std::vector<Bomb>& bombs) {
  const std::string bytes = R"({"name": "bytes", "configuration": {"endian": "little"}})";
  const auto shard = [&](std::string_view inner, const std::string& codecs) {
    return fmt::format(
        R"({{"name": "sharding_indexed", "configuration": {{"chunk_shape": [{}], )"
        R"("codecs": [{}], "index_codecs": [{}, "crc32c"], "index_location": "end"}}}})",
        inner, codecs, bytes);
  };
  std::string nested = bytes;
  for (int i = 0; i < 30; ++i) nested = shard("1, 1", nested);
  std::vector<std::pair<std::string, std::string>> texts = {
      {"a chunk of 2^40 rows", ZarrText("10, 4", "1099511627776, 4", bytes)},
      {"a chunk of 2^62 by 2^62",
       ZarrText("10, 4", "4611686018427387904, 4611686018427387904", bytes)},
      {"2^62 rows of 2^62", ZarrText("4611686018427387904, 4611686018427387904", "4, 4", bytes)},
      {"a shape beyond 64 bits", ZarrText("99999999999999999999999, 4", "4, 4", bytes)},
      {"a negative shape", ZarrText("-4, 4", "4, 4", bytes)},
      {"chunks of no rows", ZarrText("4, 4", "0, 4", bytes)},
      {"a shard of 2^62 inner chunks",
       ZarrText("4, 4", "4611686018427387904, 4", shard("1, 4", bytes))},
      {"a shard of 2^23 inner chunks", ZarrText("4, 4", "8388608, 4", shard("1, 1", bytes))},
      {"2^40 shards beside one another",
       ZarrText("1, 1099511627776", "1, 1024", shard("1, 1", bytes))},
      {"shards in shards", ZarrText("4, 4", "4, 4", nested)},
      {"9 dimensions", ZarrText("1,1,1,1,1,1,1,1,1", "1,1,1,1,1,1,1,1,1", bytes)},
      {"100,000 brackets", std::string(100'000, '[')},
      {"100,000 braces",
       [] {
         std::string text;
         for (int i = 0; i < 100'000; ++i) text += R"({"a":)";
         return text;
       }()},
      {"40 levels", fmt::format("{}{}", std::string(40, '['), std::string(40, ']'))},
      {"2 MiB of blanks", std::string(std::size_t{2} << 20, ' ')},
      {"a number of a million digits", fmt::format("[{}]", std::string(1'000'000, '9'))}};
  for (const auto& [what, text] : texts) {
    bombs.push_back({"zarr.json of another writer: " + what, 0,
                     [text = text] { return OutcomeOf(ParseZarrSource(text)); }});
    bombs.push_back({"zarr.json of a store: " + what, 0,
                     [text = text] { return OutcomeOf(DecodeArrayJson(text, "x")); }});
  }
}

// --- Files of a store ---

/// Returns a section file with one section, which holds one struct.
template <typename T>
Bytes OneStruct(FileKind kind, std::uint32_t section, const T& value) {
  MemorySink sink;
  SectionFileWriter writer(sink, kind, StoreId{});
  if (!WriteStructs<T>(writer, section, std::span(&value, 1)).ok() || !writer.Finish().ok())
    std::abort();
  return sink.Take();
}

Result<SectionFile> Parsed(Bytes bytes, FileKind kind) {
  return SectionFile::Parse(std::move(bytes), "bomb", kind, StoreId{});
}

VertexOrder TwoRows() {
  MemorySink sink;
  const std::vector<VertexId> rows = {0, 1};
  const std::vector<PartitionId> owners = {0, 0};
  if (!VertexOrder::Write(sink, StoreId{}, {rows, owners, {}, 1, 1}).ok()) std::abort();
  return *VertexOrder::Parse(*Parsed(sink.Take(), FileKind::kOrder), 2, 1, 1);
}

void AddSections(std::vector<Bomb>& bombs) {
  for (const std::uint64_t huge : kHuge) {
    bombs.push_back({fmt::format("order of {} vertices", huge), 0, [=] {
                       const OrderHeader header{.vertices = huge,
                                                .segments = huge,
                                                .partitions = 1,
                                                .vertex_types = 1,
                                                .flags = kOrderGrouped,
                                                .reserved = 0};
                       auto file = Parsed(OneStruct(FileKind::kOrder, 1, header), FileKind::kOrder);
                       return OutcomeOf(VertexOrder::Parse(*std::move(file), huge, 1, 1));
                     }});
    for (const ExternalIdKind kind : {ExternalIdKind::kInteger, ExternalIdKind::kString}) {
      bombs.push_back(
          {fmt::format("dictionary of kind {} of {} vertices", static_cast<int>(kind), huge), 0,
           [=] {
             const IdsHeader header{
                 .vertices = huge, .id_kind = static_cast<std::uint32_t>(kind), .deleted = 0};
             auto file = Parsed(OneStruct(FileKind::kVertexIds, 1, header), FileKind::kVertexIds);
             return OutcomeOf(VertexIds::Parse(*std::move(file), kind, huge));
           }});
    }
    struct Field {
      const char* name;
      std::uint64_t PartitionHeader::*field;
    };
    for (const Field& field :
         {Field{"edges", &PartitionHeader::edges}, Field{"owned", &PartitionHeader::owned},
          Field{"mirrors", &PartitionHeader::mirrors},
          Field{"boundary vertices", &PartitionHeader::boundary_owned},
          Field{"vertices", &PartitionHeader::vertices},
          Field{"first row", &PartitionHeader::first_row}}) {
      bombs.push_back({fmt::format("partition with {} {}", huge, field.name), 0, [=] {
                         PartitionHeader header{.vertices = 2,
                                                .edges = 0,
                                                .owned = 2,
                                                .mirrors = 0,
                                                .first_row = 0,
                                                .boundary_owned = 0,
                                                .partition = 0,
                                                .partitions = 1,
                                                .edge_types = 1,
                                                .flags = kPartitionOut | kPartitionGrouped};
                         header.*field.field = huge;
                         const VertexOrder order = TwoRows();
                         auto file = Parsed(OneStruct(FileKind::kPartition, 1, header),
                                            FileKind::kPartition);
                         return OutcomeOf(Adjacency::Parse(*std::move(file), order, 0, 1, 1));
                       }});
    }
    bombs.push_back(
        {fmt::format("section of {} elements", huge), 0, [=] {
           Bytes bytes = OneStruct(FileKind::kOrder, 1, std::uint64_t{0});
           std::byte* const footer_at = bytes.data() + bytes.size() - sizeof(SectionFooter);
           SectionFooter footer;
           std::memcpy(&footer, footer_at, sizeof(footer));
           std::byte* const entry = bytes.data() + footer.table_offset;
           StoreLittle(entry + offsetof(SectionEntry, element_count), huge);
           StoreLittle(bytes.data() + footer.crc_table_offset,
                       Crc32c(std::span(bytes).first(footer.crc_table_offset)));
           footer.crc_table_crc = Crc32c(std::span(bytes).subspan(footer.crc_table_offset, 4));
           std::memcpy(footer_at, &footer, sizeof(footer));
           footer.footer_crc = Crc32c(std::span(footer_at, offsetof(SectionFooter, footer_crc)));
           std::memcpy(footer_at, &footer, sizeof(footer));
           return OutcomeOf(Parsed(std::move(bytes), FileKind::kOrder));
         }});
  }
}

/// Adds manifests with a correct checksum in which one of the first numbers is changed.
void AddManifests(std::vector<Bomb>& bombs) {
  constexpr std::size_t kHeadBytes = 40;
  const Bytes sample = EncodeManifest({}, StoreId{});
  for (const std::uint64_t huge : kHuge) {
    bombs.push_back({fmt::format("manifest of length {}", huge), 0, [=] {
                       Bytes bytes = sample;
                       StoreLittle(bytes.data() + kHeadBytes - 8, huge);
                       bytes.resize(bytes.size() - 4);
                       const std::uint32_t seal = Crc32c(bytes);
                       bytes.resize(bytes.size() + 4);
                       StoreLittle(bytes.data() + bytes.size() - 4, seal);
                       return OutcomeOf(DecodeManifest(bytes, StoreId{}));
                     }});
  }
  // The lists at the end (files, arrays, series) each claim the maximum 32-bit length.
  for (std::size_t back = 8; back <= 24; back += 4) {
    bombs.push_back(
        {fmt::format("manifest with a list of 2^32 - 1, {} bytes before its end", back), 0, [=] {
           Bytes bytes = sample;
           StoreLittle(bytes.data() + bytes.size() - back, std::uint32_t{0xFFFFFFFF});
           bytes.resize(bytes.size() - 4);
           const std::uint32_t seal = Crc32c(bytes);
           bytes.resize(bytes.size() + 4);
           StoreLittle(bytes.data() + bytes.size() - 4, seal);
           return OutcomeOf(DecodeManifest(bytes, StoreId{}));
         }});
  }
}

void AddIndexes(std::vector<Bomb>& bombs) {
  for (const std::uint64_t huge : kHuge) {
    bombs.push_back({fmt::format("shard of {} inner chunks", huge), 0, [=] {
                       FakeFileSystem fs;
                       if (!WriteWholeFile(fs, "/c", Bytes(100)).ok()) std::abort();
                       const auto file = fs.OpenRead("/c");
                       return OutcomeOf(ReadShardIndex(**file, {.inner_chunks = huge}));
                     }});
    for (const bool length : {false, true}) {
      bombs.push_back(
          {fmt::format("inner chunk with {} {}", length ? "length" : "offset", huge), 0, [=] {
             const ShardIndexFormat format{.inner_chunks = 2};
             const std::vector<InnerRange> ranges = {
                 {0, 8}, {length ? 8 : huge - 1, length ? huge - 1 : 8}};
             return OutcomeOf(DecodeShardIndex(format, EncodeShardIndex(format, ranges), 1000));
           }});
    }
  }
}

void AddRecords(std::vector<Bomb>& bombs) {
  for (const std::uint32_t length : {0x00100001U, 0x7FFFFFFFU, 0xFFFFFFFFU}) {
    bombs.push_back(
        {fmt::format("job log with a record of {} bytes, and a sound one", length), 0, [=] {
           FakeFileSystem fs;
           for (const char* const record : {"first", "second", "third"})
             if (!(*JobLog::Open(fs, "/log"))->Append(record).ok()) std::abort();
           Bytes bytes = *ReadWholeFile(fs, "/log", 4096);
           StoreLittle(bytes.data() + 16 + 4, length);
           if (!fs.Overwrite("/log", bytes).ok()) std::abort();
           return OutcomeOf(JobLog::Open(fs, "/log"));
         }});
  }
  for (const int what : {0, 1, 2, 3}) {
    bombs.push_back({fmt::format("catalogue's table with handle {} beyond the file", what), 0, [=] {
                       Bytes table(200);
                       std::byte* const footer = table.data() + table.size() - 53;
                       footer[0] = std::byte{1};
                       std::fill_n(footer + 1, 4, std::byte{1});
                       for (int i = 0; i < 9; ++i) footer[1 + what + i] = std::byte{0xFF};
                       footer[1 + what + 9] = std::byte{1};
                       StoreLittle(footer + 41, std::uint32_t{5});
                       StoreLittle(footer + 45, std::uint64_t{0x88E241B785F4CFF7});
                       const auto read = [&](std::uint64_t at, std::span<std::byte> out) {
                         if (at > table.size() || out.size() > table.size() - at) std::abort();
                         std::copy_n(table.begin() + static_cast<std::ptrdiff_t>(at), out.size(),
                                     out.begin());
                         return Status::Ok();
                       };
                       const auto opened = CatalogTable::Open(table.size(), read);
                       return opened ? Status::Ok() : opened.error();
                     }});
  }
  // Each count in a record claims more entries than there are.
  const DeltaContext context{.vertices = 4};
  DeltaRunBuilder builder(false, 0, 4);
  builder.AddEdge(0, 1, 0, 1, {});
  const Bytes record = EncodeDeltaRecord(builder.Finish(1), context);
  // hash of the commits, which may be any 16 bytes
  constexpr std::size_t kHashAt = 17, kHashEnd = 33;
  for (std::size_t at = 1; at + 4 < record.size(); at += 5) {
    if (at >= kHashAt && at + 4 <= kHashEnd) continue;
    bombs.push_back({fmt::format("delta record with 0xFFFFFFFF at byte {}", at), 0, [=] {
                       Bytes bytes = record;
                       StoreLittle(bytes.data() + at, std::uint32_t{0xFFFFFFFF});
                       return OutcomeOf(DecodeDeltaRecord(bytes, 1, context));
                     }});
  }
  const Bytes backup = EncodeBackupRecord({}, StoreId{});
  const std::uint64_t manifest = EncodeManifest({}, StoreId{}).size();
  for (const std::uint64_t huge : kHuge) {
    bombs.push_back({fmt::format("record of a backup with a manifest of {} bytes", huge), 0, [=] {
                       Bytes bytes = backup;
                       bytes.resize(bytes.size() - 4);
                       StoreLittle(bytes.data() + bytes.size() - manifest - 8, huge);
                       const std::uint32_t seal = Crc32c(bytes);
                       bytes.resize(bytes.size() + 4);
                       StoreLittle(bytes.data() + bytes.size() - 4, seal);
                       return OutcomeOf(DecodeBackupRecord(bytes, StoreId{}));
                     }});
  }
}

// --- Child processes ---

struct Report {
  int code = 0;
  std::int64_t grown_bytes = 0;
  double seconds = 0;
};

std::int64_t PeakBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

double ProcessorSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Because of noexcept, an exception ends the process, as it should.
[[noreturn]] void ReadInChild(const Bomb& bomb, int to) noexcept {
  // Memory that is reserved and not used must not count: it does if MALLOC_PERTURB_ fills it.
  ::mallopt(M_PERTURB, 0);
  // Uses one CPU and one malloc arena, because each thread's stack and arena would use up the
  // address limit.
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(sched_getcpu()), &one);
  sched_setaffinity(0, sizeof(one), &one);
  mallopt(M_ARENA_MAX, 1);
  const rlimit addresses{std::uint64_t{1} << 30, std::uint64_t{1} << 30};
  setrlimit(RLIMIT_AS, &addresses);
  const rlimit processor{30, 30};
  setrlimit(RLIMIT_CPU, &processor);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  const std::int64_t before = PeakBytes();
  const double begun = ProcessorSeconds();
  const Status status = bomb.read();
  const Report report{static_cast<int>(status.code()), PeakBytes() - before,
                      ProcessorSeconds() - begun};
  const ssize_t written = ::write(to, &report, sizeof(report));
  _exit(written == sizeof(report) ? 0 : 1);
}

}  // namespace

std::vector<Bomb> AllBombs() {
  std::vector<Bomb> bombs;
  AddFrames(bombs);
  AddNpy(bombs);
  AddStreams(bombs);
  AddZarr(bombs);
  AddSections(bombs);
  AddManifests(bombs);
  AddIndexes(bombs);
  AddRecords(bombs);
  return bombs;
}

BombOutcome Explode(const Bomb& bomb) {
  int ends[2];
  if (::pipe(ends) != 0) return {};
  // of wall-clock time; the child's own limit is on CPU time
  constexpr unsigned kPatienceSeconds = 600;
  auto child = ChildProcess::Fork([&]() -> int { ReadInChild(bomb, ends[1]); }, kPatienceSeconds);
  ::close(ends[1]);
  Report report;
  const bool told = child.id() > 0 && ::read(ends[0], &report, sizeof(report)) == sizeof(report);
  ::close(ends[0]);
  const bool exited = child.Wait() == 0;
  if (!told || !exited) return {};
  return {.ended = true,
          .status = Status(static_cast<StatusCode>(report.code), ""),
          .grown_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(0, report.grown_bytes)),
          .processor_seconds = report.seconds};
}

}  // namespace rhizome::testing
