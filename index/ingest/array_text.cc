#include "index/ingest/array_text.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "index/ingest/array_triplets.h"
#include "index/ingest/file_plan.h"
#include "index/ingest/row_sources.h"
#include "index/input/zip_member.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Decides between rows and triplets.
/// Errors: kInvalidArgument, both are possible.
Result<bool> HasTriplets(const ArrayFile& file, std::size_t fields) {
  if (file.triplets) return *file.triplets;
  if (file.dim == 0) return false;
  if (fields != 3) return fields == 0;
  if (file.dim != 3) return true;
  return Fail(Status::InvalidArgument(fmt::format(
      "{}: its lines may be rows of 3 columns, or triplets 'row column value' of an array with 3 "
      "columns; say which by `triplets=false` or `triplets=true`",
      ArrayPlace(file))));
}

FilePlan PlanOf(const ArrayFile& file, InputFormat format) {
  FilePlan plan;
  plan.path = file.path;
  plan.kind = InputKind::kArray;
  plan.format = format;
  return plan;
}

}  // namespace

Result<ResolvedArray> ResolveArray(FileSystem& fs, const ArrayFile& file,
                                   std::optional<bool> header, std::optional<Delimiter> delimiter) {
  ResolvedArray resolved{.file = file, .plan = PlanOf(file, InputFormat::kText)};
  FilePlan& plan = resolved.plan;
  if (file.open || HasRows(fs, file)) {
    const bool npy = ContentExtension(file.path) == ".npy" || ParseNpzMember(file.path);
    plan.format = file.open ? InputFormat::kMemory : npy ? InputFormat::kNpy : InputFormat::kZarr;
    return resolved;
  }
  RHIZOME_ASSIGN_OR_RETURN(const FileHead head, ReadHead(fs, file.path));
  auto sniffed = SniffText(head, file.path, {.delimiter = delimiter, .fields = 0});
  if (!sniffed) return Fail(sniffed.error());
  plan.compression = CompressionName(head.compression);
  plan.dialect = sniffed->dialect;
  plan.header = header.value_or(IsHeader(sniffed->rows, InputKind::kArray));
  plan.lines = sniffed->rows.size() - (plan.header && !sniffed->rows.empty() ? 1 : 0);
  plan.comment_lines = sniffed->comment_lines;
  plan.bad_lines = sniffed->bad_lines;
  plan.whole = sniffed->whole;
  RHIZOME_ASSIGN_OR_RETURN(resolved.file.triplets, HasTriplets(file, sniffed->fields));
  for (std::size_t i = 0; i < sniffed->fields; ++i) {
    ColumnPlan column{.type = TypeOfColumn(
                          std::span(sniffed->rows).subspan(sniffed->rows.size() - plan.lines), i)};
    if (plan.header && i < sniffed->rows.front().fields.size())
      column.name = sniffed->rows.front().fields[i];
    plan.columns.push_back(std::move(column));
  }
  if (*resolved.file.triplets) return resolved;
  // Later calls reuse the shape that the first one has counted.
  auto shape = std::make_shared<std::optional<TextShape>>();
  resolved.file.open = [path = file.path, dialect = plan.dialect, header = plan.header,
                        shape](FileSystem& files) -> Result<std::unique_ptr<RowSource>> {
    if (!*shape) {
      RHIZOME_ASSIGN_OR_RETURN(*shape, ShapeOfText(files, path, dialect, header));
    }
    return OpenTextRows(files, path, dialect, header, **shape);
  };
  return resolved;
}

}  // namespace internal
}  // namespace rhizome
