#include <algorithm>
#include <cstddef>
#include <cstring>

#include "edits.h"
#include "sections.h"
#include "seeds.h"
#include "storage/base/hash.h"
#include "storage/base/little_endian.h"
#include "storage/section/section_format.h"

namespace {

using namespace rhizome;

std::vector<std::byte> Sample() {
  MemorySink sink;
  SectionFileWriter writer(sink, FileKind::kPartition, fuzzing::FuzzStoreId());
  const std::vector<std::uint64_t> numbers = {1, 2, 3};
  const std::vector<std::uint8_t> bytes = {9, 9, 9};
  RHIZOME_CHECK(writer.AddSection(1, std::span<const std::uint8_t>(bytes)).ok());
  RHIZOME_CHECK(writer.AddSection(7, std::span<const std::uint64_t>(numbers)).ok());
  RHIZOME_CHECK(writer.Finish().ok());
  return sink.Take();
}

/// Corrects the checksums, innermost first, where the footer locates them.
void Reseal(std::vector<std::byte>& file) {
  if (file.size() < sizeof(SectionPreamble) + sizeof(SectionFooter)) return;
  std::byte* const end = file.data() + file.size() - sizeof(SectionFooter);
  SectionFooter footer;
  std::memcpy(&footer, end, sizeof(footer));
  const std::uint64_t covered = footer.crc_table_offset;
  if (covered < file.size() && covered <= kSectionBlockBytes &&
      covered + sizeof(std::uint32_t) <= file.size() - sizeof(SectionFooter)) {
    StoreLittle(file.data() + covered, Crc32c(std::span(file).first(covered)));
    footer.crc_table_crc = Crc32c(std::span(file).subspan(covered, sizeof(std::uint32_t)));
  }
  std::memcpy(end, &footer, sizeof(footer));
  footer.footer_crc = Crc32c(std::span(end, offsetof(SectionFooter, footer_crc)));
  std::memcpy(end, &footer, sizeof(footer));
}

void Check(std::vector<std::byte> bytes) {
  const std::size_t size = bytes.size();
  const auto file =
      SectionFile::Parse(std::move(bytes), "fuzz", FileKind::kPartition, fuzzing::FuzzStoreId());
  if (file) {
    RHIZOME_CHECK(file->size_bytes() == size);
  } else {
    RHIZOME_CHECK(file.error().code() == StatusCode::kCorruption ||
                  file.error().code() == StatusCode::kUnsupported);
  }
}

}  // namespace

// Parses raw bytes as a section file, and a valid one with edits and correct checksums. Each must
// be rejected or parsed.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::span<const std::uint8_t> input(data + 1, size - 1);
  const auto raw = std::as_bytes(input);
  if (data[0] % 2 == 0) {
    Check({raw.begin(), raw.end()});
    return 0;
  }
  std::vector<std::byte> edited = fuzzing::WithEdits(Sample(), input);
  Reseal(edited);
  Check(std::move(edited));
  return 0;
}

std::vector<rhizome::fuzzing::Seed> rhizome::fuzzing::MakeSeeds() {
  std::vector<Seed> seeds;
  AddChanged(seeds, Joined({0}, Sample()), 1, 300);
  AddEdits(seeds, {1}, Sample().size(), 6000);
  const std::size_t footer = Sample().size() - sizeof(SectionFooter);
  const auto edit = [](Seed& seed, std::size_t at, std::uint8_t value) {
    seed.insert(seed.end(), {static_cast<std::uint8_t>(at % 256),
                             static_cast<std::uint8_t>(at / 256), 0, value});
  };
  for (const std::uint8_t version : {0, 2}) {  // in both places of the version
    Seed seed = {1};
    edit(seed, offsetof(SectionPreamble, version), version);
    edit(seed, footer + offsetof(SectionFooter, version), version);
    seeds.push_back(seed);
  }
  return seeds;
}
