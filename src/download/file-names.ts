/**
 * Names output files. Pure. A name is decided before the download starts. The extension is not known yet, so the name
 * contains `{ext}` instead. So names depend only on the order of the outputs, not on which download ends first.
 */
import { sep } from 'node:path'
import { sameFileKey } from '../host/file-system.js'
import { fill, holds, numbered, safeName, safePart, unreserved } from '../protocol/output-names.js'
import type { Target } from './target.js'

/** An output, with the values of the placeholders in its name. */
export interface OutputToName {
  readonly runId: string
  /** `video`, `image`, …; default of `{kind}`: `model`. */
  readonly kind?: string | undefined
  /** Name of a batch row; default of `{name}`: the id. */
  readonly name?: string | undefined
}

type Separator = typeof sep

const COMPONENT = { '\\': /[^\\/]+/g, '/': /[^/]+/g } as const

/** Names outputs: one for a command, because `{index}` counts from 1 over all its names. */
export class Namer {
  readonly #target: Target
  readonly #separator: Separator
  readonly #nextNumbers: NextNumbers = new Map()
  #index = 0

  constructor(target: Target, separator: Separator = sep) {
    this.#target = target
    this.#separator = separator
  }

  /**
   * Returns one path per output, which may contain `{ext}`. Pass all outputs of a run in one call. Later calls continue
   * the count and avoid all earlier names.
   */
  name(outputs: readonly OutputToName[]): readonly string[] {
    const positions = positionsInRuns(outputs)
    return outputs.map((output, at) => {
      this.#index += 1
      if (this.#target.kind === 'stdout') return '-'
      const template = templateFor(this.#target, positions[at], this.#separator)
      const name = nameOne(template, output, this.#index, this.#separator)
      return distinct(name, this.#nextNumbers, this.#separator)
    })
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
  return new Namer(target).name(runs)
}
