/**
 * Chooses the paths of a run's outputs. Checks all of them before the first download, and each one again directly before
 * its file is replaced: hours may have passed since the plan was made.
 */
import { posix, relative, resolve, sep } from 'node:path'
import { RushesError } from '../../errors.js'
import { exists } from '../../host/file-system.js'
import type { Destination, DownloadedFile } from '../../protocol/media.js'
import { numbered } from '../../protocol/output-names.js'
import { type LockedOutput, outputsOf } from '../lock/lock.js'
import { isInPlace, type PlannedOutput, unchangedHash } from '../plan/disk.js'
import { type ActiveStep, type Plan, placedFile } from '../plan/index.js'

/** Path of an output. */
interface Place {
  /** Absolute path. May end in `.{ext}`. */
  readonly path: string
  /** Hash of the file that existed when the plan was made, and that may be replaced. */
  readonly replaces: string | undefined
}

export interface PlacesOptions {
  readonly plan: Plan
  /** Absolute path of the manifest's folder. */
  readonly folder: string
  /** Command that continues the batch and pays for no run again. */
  readonly continuation: string
}

/** The places of the outputs of one run. */
export class Places {
  /** Files that need no download. */
  readonly inPlace: DownloadedFile[] = []
  readonly #step: ActiveStep
  readonly #options: PlacesOptions
  /** The outputs in the lock file if the run is downloaded again. Empty for a new run. */
  readonly #known: readonly LockedOutput[]
  readonly #places: Place[] = []
  /** Files that were kept, by the path of the result beside them. */
  readonly #kept = new Map<string, string>()

  constructor(step: ActiveStep, options: PlacesOptions) {
    this.#step = step
    this.#options = options
    const { action, locked } = step
    const isAgain = action.do === 'download' && action.why !== 'unfinished' && action.run === locked?.run
    this.#known = isAgain ? outputsOf(locked) : []
  }

  /** Returns the paths of the outputs from this index on. For a new run the number of outputs is known only now. */
  async namesFor(urls: readonly string[], from: number): Promise<readonly string[]> {
    const { entry, locked, outputs } = this.#step
    const { disk } = this.#options.plan
    const planned = outputs.slice(0, urls.length)
    if (urls.length > outputs.length) {
      disk.refresh()
      planned.push(...(await disk.lookAt(entry, locked, urls.length)).slice(outputs.length))
    }
    for (const [at, output] of planned.entries())
      if (at >= from) this.#places.push(this.#placeOf(output, at, urls[at]))
    return this.#places.slice(from).map(({ path }) => path)
  }

  #placeOf(output: PlannedOutput, at: number, url: string | undefined): Place {
    const { flight, outputs } = this.#step
    const { folder } = this.#options
    const { file, name, fact } = output
    const known = this.#known[at] ?? placedFile(output, flight, folder)
    // Keep the name used by the download: leftovers of a killed batch under that name are removed.
    if (known !== undefined && isInPlace(fact, known.sha256)) {
      this.inPlace.push({ ...known, url: url ?? known.url, path: resolve(folder, file) })
      return { path: resolve(folder, name), replaces: undefined }
    }
    // The plan checked only the outputs that it knew.
    const isChecked = fact.is === 'file' && (at < outputs.length || fact.isFree)
    // The bytes of a new run decide its extension; a file that is downloaded again keeps the one that it had.
    const path = resolve(folder, this.#known[at] === undefined ? name : file)
    return { path, replaces: isChecked ? fact.sha256 : undefined }
  }

  /**
   * Returns the final path of a complete file. Call it directly before the move. If the file at the place of the output
   * is not the one that the plan allows to replace, it is kept, and the result gets the next free name beside it. Throws
   * `download_failed` for other bytes than those in the lock file: other rows were made from these.
   */
  async destinationOf({ path, sha256 }: DownloadedFile, index: number): Promise<Destination> {
    const known = this.#known[index]
    if (known !== undefined && known.sha256 !== sha256)
      throw new RushesError(
        'download_failed',
        'The output that was downloaded again has other bytes than the lock file says.',
        { hint: 'If the service has changed the file, create it again with --force --only.' },
      )
    if (this.#step.flags.overwrite) return { path, mayReplace: true }
    if (!exists(path)) return { path, mayReplace: false }
    const present = await unchangedHash(path)
    if (present !== undefined && [this.#places[index]?.replaces, sha256].includes(present))
      return { path, mayReplace: true }
    const beside = freeNameBeside(path, this.#options)
    this.#kept.set(beside, path)
    return { path: beside, mayReplace: false }
  }

  /** The error for files that were kept. */
  keptError(): RushesError | undefined {
    if (this.#kept.size === 0) return undefined
    const { folder, continuation } = this.#options
    const shown = (paths: Iterable<string>) => [...paths].map((path) => relative(folder, path)).join(', ')
    const [results, files] = [shown(this.#kept.keys()), shown(this.#kept.values())]
    // They were changed, or appeared, since the plan was made, or have an extension that the plan did not know.
    const [was, they] = this.#kept.size === 1 ? ['was', 'it is'] : ['were', 'they are']
    return new RushesError(
      'download_failed',
      `${files} ${was} kept, because ${they} not as the lock file says. The result is in ${results}.`,
      {
        hint:
          `To use the result, move ${files} away and run ${continuation}: it renames ${results}. ` +
          `With --overwrite, it replaces ${files}. Nothing is paid again.`,
      },
    )
  }
}

/** Returns `fox-2.png` for `fox.png`, or a higher number if that is the name of a file or of another output. */
function freeNameBeside(path: string, { plan: { steps, disk }, folder }: PlacesOptions): string {
  const keyOf = (file: string) => {
    const { dir, name } = posix.parse(file)
    return disk.keyOf(posix.join(dir, name))
  }
  const planned = new Set(steps.flatMap(({ outputs }) => outputs.map(({ name }) => keyOf(name))))
  for (let number = 2; ; number++) {
    const beside = numbered(path, number, sep)
    const isTaken = exists(beside) || planned.has(keyOf(relative(folder, beside).replaceAll('\\', '/')))
    if (!isTaken) return beside
  }
}
