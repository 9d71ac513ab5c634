#pragma once

/// Marks the symbols that librhizome and librhizome_gnn export; public headers open their namespace
/// with it. Everything else is compiled with hidden visibility and belongs to `rhizome::internal`.
/// The exception are classes of the engine on which librhizome_gnn is built: librhizome exports
/// them for that library only.
#define RHIZOME_API [[gnu::visibility("default")]]
