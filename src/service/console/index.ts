/**
 * The console without HTTP: users sign in, see the runs of their account, create runs, and manage keys and sessions.
 * Routes and cookies are in `http/console/`.
 */
import type { Clock } from '../../host/clock.js'
import { KINDS, type Kind, type ModelDocument } from '../../protocol/models.js'
import type { Engine } from '../engines/engine.js'
import type { FileStore } from '../files/contract.js'
import { defaultDocument } from '../models/served-model.js'
import { LOCAL_MODELS } from '../names.js'
import type { RateLimiter } from '../rate/rate-limiter.js'
import { createPasswords, type Passwords } from '../rules/credentials.js'
import type { ServiceStore } from '../store/contract.js'
import type { RenderState } from '../stored-run.js'
import { type Credits, createCredits } from './credits.js'
import { type ConsoleKeys, createConsoleKeys } from './keys.js'
import { createLimits, type Limits, withReadTurns } from './limits.js'
import { type ConsoleRuns, createConsoleRuns } from './runs.js'
import { createSessions, type Sessions } from './sessions.js'
import { createThumbnails, type Thumbnails } from './thumbnails.js'

export interface Console {
  readonly models: readonly ModelDocument[]
  readonly sessions: Sessions
  readonly limits: Limits
  readonly runs: ConsoleRuns
  readonly thumbnails: Thumbnails
  readonly keys: ConsoleKeys
  readonly credits: Credits
}

interface ConsoleParts {
  readonly store: ServiceStore
  readonly outputs: FileStore
  readonly clock: Clock
  readonly rateLimiter: RateLimiter
  readonly models: readonly ModelDocument[]
  /** Makes thumbnails. If undefined, the list of runs has none. */
  readonly thumbnailEngine: Engine | undefined
  readonly passwords?: Passwords | undefined
  /** Returns the progress of a run that this process renders, if it reports any. */
  renderStateOf(id: string): RenderState | undefined
  baseUrl(): string
  onError(error: unknown): void
}

export function createConsole(parts: ConsoleParts): Console {
  const { models, outputs, thumbnailEngine, passwords = createPasswords() } = parts
  const limits = createLimits(parts.rateLimiter)
  const inTurns = { ...parts, store: withReadTurns(parts.store) }
  const nameOf = (kind: Kind) => defaultDocument(models, kind)?.name ?? LOCAL_MODELS[kind]
  const defaults = { video: nameOf('video'), image: nameOf('image') }
  return {
    // Images first, in the order of the form.
    models: models.toSorted((one, other) => KINDS.indexOf(other.kind) - KINDS.indexOf(one.kind)),
    sessions: createSessions({ ...parts, passwords, limits, models: defaults }),
    limits,
    runs: createConsoleRuns({ ...inTurns, hasThumbnails: thumbnailEngine !== undefined }),
    thumbnails: createThumbnails({ ...parts, files: outputs, engine: thumbnailEngine }),
    keys: createConsoleKeys(inTurns),
    credits: createCredits(inTurns),
  }
}
