/** What a batch needs of the service for one row, and what comes of the row. */
import { EXIT, RushesError } from '../../errors.js'
import type { RunState } from '../../protocol/run-state.js'
import type { Made, Output } from '../lock/lock.js'
import type { CreateAction, DownloadAction, Step } from '../plan/index.js'
import type { Polled, PollOptions } from '../schedule/index.js'

/** A step that something is done for. */
export type Active = Step & { readonly action: DownloadAction | CreateAction }

export interface RowResult {
  readonly step: Step
  /** `up_to_date`: its sources were created again with the same bytes. `blocked`: one of its sources failed. */
  readonly result: 'created' | 'downloaded' | 'up_to_date' | 'failed' | 'blocked' | 'unconfirmed'
  readonly made?: Made | undefined
  readonly run?: string | undefined
  readonly error?: RushesError | undefined
  /** Name of the row that failed. */
  readonly blockedBy?: string | undefined
  readonly warnings?: readonly string[]
}

/** The same for each row, so that it is printed once. */
export const LEFT_ALONE = new RushesError(
  'submission_unknown',
  'The outcome of its last create is unknown, so it was not sent again. A run may exist and cost money.',
  {
    exitCode: EXIT.outcomeUnknown,
    hint: 'Check the runs of your account first. If the run does not exist, send it again with --resubmit-unconfirmed.',
  },
)

export interface BatchService {
  /** The address, as the lock file names it. */
  readonly address: string
  /**
   * Creates the run of a row. `token` is that of this create, for the journal. `beforeSend` comes before each sending,
   * after the journal has the token, and may stop it. Never rejects.
   */
  submit(step: Active, token: string, beforeSend: () => Promise<void>): Promise<Submitted>
  /** `created`: what `submit` has given; undefined for a run that exists already. */
  follow(step: Active, id: string, created: CreatedRun | undefined): Followed
  /** Puts the outputs of a succeeded run in place. `at` is the index of the output. Never rejects. */
  download(
    step: Active,
    state: RunState,
    places: readonly Place[],
    beforePlace: (file: OutputFile, at: number) => Promise<void>,
  ): Promise<Downloaded>
}

/** Where an output gets its name. */
export interface Place {
  /** Absolute; may end in `.{ext}`. */
  readonly path: string
  /** A file that is there may be replaced. */
  readonly mayReplace: boolean
  /** The output is in place already, and is not downloaded. */
  readonly inPlace: OutputFile | undefined
}

export interface CreatedRun {
  readonly id: string
  /** The service's own word, if the response to the create has one. */
  readonly status?: string | undefined
  /** Monotonic instants, in milliseconds. */
  readonly sentAtMs: number
  readonly answeredAtMs: number
}

export type Submitted =
  | ({ readonly is: 'created' } & CreatedRun)
  /** A run may exist. `key`: of the journal's row. */
  | { readonly is: 'unconfirmed'; readonly key: string | undefined; readonly error: RushesError }
  | { readonly is: 'refused'; readonly error: RushesError }
  /** The batch was stopped before anything was sent: the row has not started. */
  | { readonly is: 'unsent' }

export interface Followed {
  poll(options: PollOptions): Promise<RowStep>
  /** The error of a row whose time limit has passed: `limit`, or why the service never answered. */
  errorAtLimit(limit: RushesError): RushesError
}

export type RowStep =
  | (Exclude<Polled, { readonly is: 'over' | 'running' }> & { readonly state?: undefined })
  | (Extract<Polled, { readonly is: 'running' }> & { readonly state: RunState })
  /** `error`: why there is nothing to download. */
  | {
      readonly is: 'over'
      readonly state: RunState | undefined
      readonly error: RushesError | undefined
      readonly durationMs?: number | undefined
    }

/** `path` is absolute. */
export type OutputFile = Omit<Output, 'file'> & { readonly path: string }

export type Downloaded =
  | {
      readonly ok: true
      /** All outputs of the run, in their order. */
      readonly files: readonly [OutputFile, ...OutputFile[]]
      readonly warnings: readonly string[]
    }
  | { readonly ok: false; readonly error: RushesError }
