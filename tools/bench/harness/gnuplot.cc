#include "tools/bench/harness/gnuplot.h"

#include <fmt/format.h>

#include <span>

#include "rhizome/file_system.h"
#include "storage/io/files.h"
#include "tools/bench/harness/child_process.h"

namespace rhizome {

Status CheckPlotPath(const std::string& path) {
  const bool drawable = path.ends_with(".svg") || path.ends_with(".png");
  if (drawable && path.find('\'') == path.npos) return Status::Ok();
  return Status::InvalidArgument(fmt::format(
      "--plot '{}': the file must end in .svg or .png, and have no quotes in its name", path));
}

std::string PlotHead(const std::string& path, int width, int height) {
  return fmt::format("set terminal {} size {},{}\nset output '{}'\n",
                     path.ends_with(".png") ? "png" : "svg", width, height, path);
}

Status DrawPlot(const std::string& path, const std::string& script) {
  const std::string file = path + ".gnuplot";
  RHIZOME_ASSIGN_OR_RETURN(OutputFile written, OutputFile::Create(file));
  RHIZOME_RETURN_IF_ERROR(written.Append(std::as_bytes(std::span(script))));
  RHIZOME_RETURN_IF_ERROR(written.Commit());
  const Result<int> code = RunChild({"gnuplot", file});
  if (!code && code.error().code() == StatusCode::kUnsupported) {
    return Status::NotFound("gnuplot is not installed; the script of the plot is in " + file);
  }
  if (!code) return code.error();
  if (*code == 0) return Status::Ok();
  return Status::IoError("gnuplot failed to draw " + path + "; its script is in " + file);
}

}  // namespace rhizome
