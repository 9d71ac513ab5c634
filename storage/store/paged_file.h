#pragma once

#include <string_view>

#include "rhizome/status.h"
#include "rhizome/store.h"
#include "storage/section/section_file.h"

namespace rhizome {
inline namespace internal {

/// As Store::LoadSectionFile, but reads only the tables; the sections are read block by block when
/// they are used (SectionFile::paged).
/// Errors: as Store::LoadSectionFile.
Result<SectionFile> OpenPagedFile(const Store& store, std::string_view relative_path,
                                  FileKind kind);

}  // namespace internal
}  // namespace rhizome
