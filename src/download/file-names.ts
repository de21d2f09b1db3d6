/**
 * The names of output files. Pure. A name is decided before the download starts; the extension, which is not known yet,
 * stays in it as `{ext}`. So names depend on the order of the outputs only, and not on which download ends first.
 */
import { sep } from 'node:path'
import { cutToBytes } from '../host/files.js'
import { fill, holds, type Target } from './target.js'

/** The values of the placeholders in a name. */
export interface OutputToName {
  readonly runId: string
  /** `video`, `image`, …; `{kind}` is `model` without it. */
  readonly kind?: string | undefined
  /** The name of a batch row; `{name}` is the id without it. */
  readonly name?: string | undefined
}

export interface Namer {
  /**
   * One path per output, which may contain `{ext}`. All outputs of a run belong in one call; later calls continue
   * counting and avoid all earlier names.
   */
  name(outputs: readonly OutputToName[]): readonly string[]
}

type Separator = typeof sep

const COMPONENT = { '\\': /[^\\/]+/g, '/': /[^/]+/g } as const
const LAST_COMPONENT = { '\\': /[^\\/]*$/, '/': /[^/]*$/ } as const

/** Create one per command: `{index}` counts from 1 over all names. */
export function createNamer(target: Target, separator: Separator = sep): Namer {
  const nextNumbers: NextNumbers = new Map()
  let index = 0
  return {
    name: (outputs) =>
      outputs.map((output, at) => {
        index += 1
        if (target.kind === 'stdout') return '-'
        const template = templateFor(target, outputs, at, separator)
        return distinct(nameOne(template, output, index, separator), nextNumbers, separator)
      }),
  }
}

/** The names of `-d` are templates too: `<id>.<ext>`, or `<id>-1.<ext>` where the run has several outputs. */
function templateFor(
  target: Exclude<Target, { kind: 'stdout' }>,
  outputs: readonly OutputToName[],
  at: number,
  separator: Separator,
): string {
  if (target.kind === 'template') return target.template
  const ofThisRun = (list: readonly OutputToName[]) =>
    list.filter(({ runId }) => runId === outputs[at]?.runId).length
  const several = ofThisRun(outputs) > 1
  const name = several ? `{id}-${ofThisRun(outputs.slice(0, at + 1))}.{ext}` : '{id}.{ext}'
  return inFolder(target.folder, name, separator)
}

/** The folder stays as the user wrote it; `.` is left out. */
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
 * The second output with the same name gets `-2` before its extension, the third `-3`. Names are compared without case,
 * as some file systems do, and without the extension: `fox.{ext}` gives `fox.png` and `fox-2.jpg`.
 */
function distinct(path: string, nextNumbers: NextNumbers, separator: Separator): string {
  const key = (text: string) => text.normalize('NFC').toLowerCase()
  let free = path
  let number = nextNumbers.get(key(path)) ?? 2
  while (nextNumbers.has(key(free))) free = numbered(path, number++, separator)
  nextNumbers.set(key(path), number)
  if (free !== path) nextNumbers.set(key(free), 2)
  return free
}

/**
 * Of each name that is taken, the number to try next: of ten thousand with one name, each would try all numbers
 * before.
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
  /** How many outputs there will be at least: one per run. */
  readonly count: number
  readonly kind?: string | undefined
  readonly name?: string | undefined
}

/**
 * The paths that are certain before anything is paid for, so that one that exists can be refused first. None when
 * the path waits for the id, the extension, or a name that defaults to the id.
 */
export function knownPaths(target: Target, { count, kind, name }: KnownOutputs): readonly string[] {
  if (target.kind !== 'template') return []
  const { template } = target
  if (holds(template, 'id') || holds(template, 'ext')) return []
  if (name === undefined && holds(template, 'name')) return []
  const runs = Array.from({ length: count }, (_, at) => ({ runId: String(at), kind, name }))
  return createNamer(target).name(runs)
}

// Text from elsewhere in a file name cannot leave the folder, hide the file, look like a flag, change the reading
// direction, or name a device.

const MAX_PART_LENGTH = 100

/** Control, format (reading direction, zero width) and unassigned characters, what Windows rejects, and braces. */
const UNSAFE = /[\p{C}\p{Zl}\p{Zp}<>:"/\\|?*{}]/gu

/** An id: everything but `[A-Za-z0-9._-]` becomes `_`; no leading dot or dash; 1 to 100 characters. */
export const safeName = (id: string): string =>
  id
    .replace(/[^A-Za-z0-9._-]/gu, '_')
    .replace(/^[.-]+/, '')
    .slice(0, MAX_PART_LENGTH) || '_'

/** A name that a person chose: letters of any script and spaces stay; 1 to 100 bytes. */
export const safePart = (text: string): string =>
  cutToBytes(
    text
      .normalize('NFC')
      .replace(UNSAFE, '_')
      .replace(/^[\s.-]+/u, ''),
    MAX_PART_LENGTH,
  ).replace(/[\s.]+$/u, '') || '_'

const DEVICE = /^(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)\s*(\.|$)/i

/** Puts `_` before names that Windows reserves for devices, on every system: files are copied between systems. */
export const unreserved = (name: string): string => (DEVICE.test(name) ? `_${name}` : name)
