// Checks of file locations: no user output goes into a store, and missing files of a store are
// damage.

#include <filesystem>
#include <memory>
#include <string>

#include "rhizome/backup.h"
#include "rhizome/store.h"
#include "storage/array_fixture.h"
#include "storage/io/files.h"
#include "storage/io/stored_file.h"
#include "testing/care.h"

namespace rhizome::testing {

Complaint OutputsStayOutside() {
  FileSystem& fs = FileSystem::Posix();
  TempDir dir;
  const Path store = dir / "s";
  const Path backups = dir / "b";
  if (!MakeStore(fs, store).ok()) return "no store";
  if (!BackupStore(fs, store, backups, {}, JobControl())) return "no backup";
  std::filesystem::create_directory_symlink(store, dir / "road");
  for (const Path& folder : {store, backups, dir / "road", store / "generations/deep"}) {
    const Path place = folder / "new";
    const auto refused = [](const auto& outcome) {
      return AsStatus(outcome).code() == StatusCode::kInvalidArgument;
    };
    if (!refused(BackupStore(fs, store, place, {}, JobControl())))
      return "backups in " + place.string();
    if (!refused(RestoreStore(fs, backups, place, std::nullopt, JobControl())))
      return "a store is restored in " + place.string();
    if (!refused(Store::Create(fs, place, FixedStoreId(2)))) return "a store in " + place.string();
    if (!refused(OutputFile::Create(place))) return "a file in " + place.string();
    if (!refused(Store::Open(fs, store, Store::Mode::kRead, {.scratch = folder})))
      return "scratch files in " + folder.string();
    if (std::filesystem::exists(place)) return place.string() + " was made";
  }
  if (!OutputFile::Create(dir / "file")) return "a file beside a store is refused";
  return std::nullopt;
}

Complaint MissingFilesAreDamage() {
  FileSystem& fs = FileSystem::Posix();
  const auto look = [&](const Path& path) -> Status {
    RHIZOME_ASSIGN_OR_RETURN(const auto store, Store::Open(fs, path, Store::Mode::kRead));
    RHIZOME_ASSIGN_OR_RETURN(const auto array, store->OpenArray("feat"));
    std::vector<std::byte> rows(array->RowsInChunk(0) * array->entry().row_bytes());
    RHIZOME_RETURN_IF_ERROR(AsStatus(array->ReadChunk(0, rows)));
    return AsStatus(OpenStored(fs, store->GenerationFolder() / "topology/part-0000.adj"));
  };
  for (const char* const file : {"PIN", "MANIFEST-000001", "arrays/feat/zarr.json",
                                 "arrays/feat/c.0.0", "topology/part-0000.adj"}) {
    TempDir dir;
    if (!MakeStore(fs, dir / "s").ok()) return "no store";
    if (const Status sound = look(dir / "s"); !sound.ok()) return sound.ToString();
    std::filesystem::remove(dir / "s/generations/000001" / file);
    const Status status = look(dir / "s");
    if (status.code() != StatusCode::kCorruption ||
        status.message().find(file) == std::string::npos)
      return std::string("without ") + file + ": " + status.ToString();
  }
  return std::nullopt;
}

}  // namespace rhizome::testing
