/**
 * The runner of GitHub Actions takes lines of a job's output for commands (`::stop-commands::x`, `##[error]x`). Names, paths
 * and messages are data, so no line that has them may be one. Pure.
 */

/** `::name` after white space at the beginning of a line, and `##[name]` anywhere in it. */
export const withoutCommands = (lines: string): string =>
  lines.replace(/^([\s\u0085]*):(?=:)/gm, '$1: ').replaceAll('##[', '## [')

/** The same value: `##[` can be in texts of the JSON only. */
export const jsonWithoutCommands = (json: string): string => json.replaceAll('##[', '\\u0023#[')
