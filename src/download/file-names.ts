/**
 * Names output files. Pure. A name is decided before the download starts. The extension is not known yet, so the name
 * contains `{ext}` instead. So names depend only on the order of the outputs, not on which download ends first.
 */
import { sep } from 'node:path'
import { isDeviceName, sameFileKey } from '../host/file-system.js'
import { cutToBytes } from '../host/files.js'
import { fill, holds, type Target } from './target.js'

/** An output, with the values of the placeholders in its name. */
export interface OutputToName {
  readonly runId: string
  /** `video`, `image`, …; default of `{kind}`: `model`. */
  readonly kind?: string | undefined
  /** Name of a batch row; default of `{name}`: the id. */
  readonly name?: string | undefined
}

export interface Namer {
  /**
   * Returns one path per output, which may contain `{ext}`. Pass all outputs of a run in one call. Later calls continue
   * the count and avoid all earlier names.
   */
  name(outputs: readonly OutputToName[]): readonly string[]
}

type Separator = typeof sep

const COMPONENT = { '\\': /[^\\/]+/g, '/': /[^/]+/g } as const
const LAST_COMPONENT = { '\\': /[^\\/]*$/, '/': /[^/]*$/ } as const

/** Creates a namer. Create one per command, because `{index}` counts from 1 over all its names. */
export function createNamer(target: Target, separator: Separator = sep): Namer {
  const nextNumbers: NextNumbers = new Map()
  let index = 0
  return {
    name(outputs) {
      const positions = positionsInRuns(outputs)
      return outputs.map((output, at) => {
        index += 1
        if (target.kind === 'stdout') return '-'
        const template = templateFor(target, positions[at], separator)
        return distinct(nameOne(template, output, index, separator), nextNumbers, separator)
      })
    },
  }
}

/** Position of an output among the outputs of its run, from 0, and their number. */
interface PositionInRun {
  readonly position: number
  readonly outputs: number
}

/** Returns the position of each output in its run. */
function positionsInRuns(outputs: readonly OutputToName[]): readonly PositionInRun[] {
  const counts = new Map<string, number>()
  const found = outputs.map(({ runId }) => {
    const position = counts.get(runId) ?? 0
    counts.set(runId, position + 1)
    return { runId, position }
  })
  return found.map(({ runId, position }) => ({ position, outputs: counts.get(runId) ?? 1 }))
}

/**
 * Returns the template of an output's path. Names with `-d` are templates too: `<id>.<ext>`, or `<id>-1.<ext>` if the
 * run has several outputs.
 */
function templateFor(
  target: Exclude<Target, { kind: 'stdout' }>,
  { position, outputs }: PositionInRun = { position: 0, outputs: 1 },
  separator: Separator,
): string {
  if (target.kind === 'template') return target.template
  const name = outputs > 1 ? `{id}-${position + 1}.{ext}` : '{id}.{ext}'
  return inFolder(target.folder, name, separator)
}

/** Joins folder and name. Keeps the folder as the user wrote it, but omits `.`. */
const inFolder = (folder: string, name: string, separator: Separator): string => {
  if (folder === '.') return name
  return folder.endsWith('/') || folder.endsWith(separator) ? folder + name : `${folder}/${name}`
}

function nameOne(
  template: string,
  { runId, kind, name }: OutputToName,
  index: number,
  separator: Separator,
): string {
  const values = {
    id: safeName(runId),
    index: String(index),
    kind: safePart(kind ?? 'model'),
    name: name === undefined ? safeName(runId) : safePart(name),
  }
  return template.replace(COMPONENT[separator], (component) => {
    const filled = fill(component, values)
    return filled === component ? component : unreserved(filled)
  })
}

/**
 * Makes a name distinct: the second output with the same name gets `-2` before its extension, the third `-3`. The
 * comparison ignores case, as some file systems do, and the extension: `fox.{ext}` gives `fox.png` and `fox-2.jpg`.
 */
function distinct(path: string, nextNumbers: NextNumbers, separator: Separator): string {
  let free = path
  let number = nextNumbers.get(sameFileKey(path)) ?? 2
  while (nextNumbers.has(sameFileKey(free))) free = numbered(path, number++, separator)
  nextNumbers.set(sameFileKey(path), number)
  if (free !== path) nextNumbers.set(sameFileKey(free), 2)
  return free
}

/**
 * The next number to try for each used name. Without it, each of ten thousand outputs with the same name would try all
 * earlier numbers.
 */
type NextNumbers = Map<string, number>

const numbered = (path: string, number: number, separator: Separator): string =>
  path.replace(LAST_COMPONENT[separator], (file) => {
    const dot = file.lastIndexOf('.')
    return dot > 0 ? `${file.slice(0, dot)}-${number}${file.slice(dot)}` : `${file}-${number}`
  })

export const awaitsExtension = (path: string): boolean => holds(path, 'ext')

export const withExtension = (path: string, extension: string): string =>
  fill(path, { ext: safePart(extension) })

export interface KnownOutputs {
  /** Minimum number of outputs: one per run. */
  readonly count: number
  readonly kind?: string | undefined
  readonly name?: string | undefined
}

/**
 * Returns the paths that are known before a run is paid for, so that an existing file can be refused first. Returns
 * none if the path depends on the id, the extension, or a name that defaults to the id.
 */
export function knownPaths(target: Target, { count, kind, name }: KnownOutputs): readonly string[] {
  if (target.kind !== 'template') return []
  const { template } = target
  if (holds(template, 'id') || holds(template, 'ext')) return []
  if (name === undefined && holds(template, 'name')) return []
  const runs = Array.from({ length: count }, (_, at) => ({ runId: String(at), kind, name }))
  return createNamer(target).name(runs)
}

// Text from outside (an id, a name) must not make a file name leave the folder, hide the file, look like a flag, change
// the reading direction, or match a device.

const MAX_PART_LENGTH = 100

/**
 * Unsafe characters: control, format (reading direction, zero width) and unassigned characters, the characters that
 * Windows rejects, and braces.
 */
const UNSAFE = /[\p{C}\p{Zl}\p{Zp}<>:"/\\|?*{}]/gu

/**
 * Makes an id safe: any character except `[A-Za-z0-9._-]` becomes `_`, leading dots and dashes are removed, and the
 * length is 1 to 100 characters.
 */
export const safeName = (id: string): string =>
  id
    .replace(/[^A-Za-z0-9._-]/gu, '_')
    .replace(/^[.-]+/, '')
    .slice(0, MAX_PART_LENGTH) || '_'

/** Makes a user's text safe: letters of any script and spaces stay; the length is 1 to 100 bytes. */
export const safePart = (text: string): string =>
  cutToBytes(
    text
      .normalize('NFC')
      .replace(UNSAFE, '_')
      .replace(/^[\s.-]+/u, ''),
    MAX_PART_LENGTH,
  ).replace(/[\s.]+$/u, '') || '_'

/**
 * Puts `_` before a name that Windows reserves for a device. Done on every system, because users copy files between
 * systems.
 */
export const unreserved = (name: string): string => (isDeviceName(name) ? `_${name}` : name)
