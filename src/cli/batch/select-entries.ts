/** `--only <glob>`: which entries of a manifest a batch works on. */
import { sep } from 'node:path'
import type { ManifestEntry } from '../../batch/manifest/index.js'
import { usageError } from '../../errors.js'
import { nearest, printable } from '../../protocol/text.js'

/**
 * Returns a function that selects runs. A glob matches the name of the run, the name of its row (also before its
 * placeholders are filled in), or its output.
 */
export async function selectorFor(
  only: readonly string[],
  entries: readonly ManifestEntry[],
  separator = sep,
): Promise<(entry: ManifestEntry) => boolean> {
  if (only.length === 0) return () => true
  const { default: picomatch } = await import('picomatch')
  const matchers = only.map((glob) => {
    // On Windows, a backslash separates folders; elsewhere it escapes the next character.
    const pattern = separator === '\\' ? glob.replaceAll('\\', '/') : glob
    const matches = picomatch(pattern.normalize(), { dot: true })
    return { glob, matches: (text: string) => matches(text.normalize()) }
  })
  const matchesEntry = (
    { name, rowName, template, output }: ManifestEntry,
    matches: (text: string) => boolean,
  ): boolean => [name, rowName, template ?? name, output].some((text) => matches(text))
  for (const { glob, matches } of matchers)
    if (!entries.some((entry) => matchesEntry(entry, matches))) {
      const names = entries.flatMap(({ name, output }) => [name, output])
      const near = groupOf(glob, entries) ?? nearest(glob, names)
      const suggestion = near === undefined ? '' : ` Did you mean "${printable(near)}"?`
      throw usageError(
        `--only ${glob} does not match the name or output of any run.${suggestion}`,
        '* matches within one folder, ** across folders.',
      )
    }
  return (entry) => matchers.some(({ matches }) => matchesEntry(entry, matches))
}

/** Suggests a glob such as `icon*` for a prefix of several names. */
function groupOf(word: string, entries: readonly ManifestEntry[]): string | undefined {
  const longer = entries.filter(({ name }) => word !== '' && name.startsWith(word))
  if (longer.length < 2) return undefined
  return `${word}${longer.some(({ name }) => name.includes('/', word.length)) ? '**' : '*'}`
}
