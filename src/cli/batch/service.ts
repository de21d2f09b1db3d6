/** What a batch needs of the service, joined with the journal and the downloader. */
import type { Active, BatchService } from '../../batch/carry-out/index.js'
import type { Claim } from '../../batch/lock/claim.js'
import type { Made } from '../../batch/lock/lock.js'
import { inputToSend } from '../../batch/manifest/index.js'
import { createNamer } from '../../download/index.js'
import type { Connection, Context } from '../context/context.js'
import { asRushesError } from '../process/exit.js'
import { Interruption } from '../process/interrupts.js'
import { createRunFollower } from '../runs/follow-run.js'
import { encodeRequest } from '../runs/request.js'
import { withRunOutputs } from '../runs/run-outputs.js'
import { mayExist, submit } from '../runs/submit.js'
import { createSourceUrls } from './source-urls.js'

export interface BatchServiceOptions {
  readonly overwrite: boolean
  /** Absolute: the manifest's. */
  readonly folder: string
  /** The output of a row, by the lock file. */
  madeOf(name: string): Made | undefined
  readonly claim: Claim
  /** Stops the downloads. */
  readonly signal: AbortSignal
  /** A signal came while a create is unanswered. */
  onGrace(): void
}

export async function createBatchService(
  ctx: Context,
  { client, fetch }: Connection,
  { overwrite, folder, madeOf, claim, signal, onGrace }: BatchServiceOptions,
): Promise<BatchService> {
  const { clock, interrupts } = ctx
  const recorder = await ctx.recorder()
  const downloader = await ctx.downloader(fetch)
  const address = await ctx.address()
  const sources = createSourceUrls({
    client,
    fetch,
    clock,
    address,
    folder,
    madeOf,
    signal: interrupts.first,
  })

  async function submitRow(
    { entry, model = '', meaning = entry.meaning }: Active,
    beforeSend: () => Promise<void>,
    onUnconfirmed: (key: string | undefined) => void,
  ) {
    const input = await withRunOutputs(ctx, client, await inputToSend(entry, sources.urlOf))
    const kept = recorder.note({ kind: entry.kind, model, input, meaning })
    const unknown: typeof kept.unknown = (error) => {
      const key = kept.unknown(error)
      onUnconfirmed(key)
      return key
    }
    const note = { ...kept, unknown }
    return submit({
      client,
      body: encodeRequest(model, input),
      clock,
      interrupts,
      note,
      async beforeSend() {
        await beforeSend()
        // After the lock file knows of the create: see claim.ts.
        await claim.check()
      },
      onGrace,
    })
  }

  return {
    address,
    overwrites: overwrite,
    async submit(step, beforeSend) {
      let key: string | undefined
      const onUnconfirmed = (kept: string | undefined) => {
        key = kept
      }
      try {
        return { is: 'created', ...(await submitRow(step, beforeSend, onUnconfirmed)) }
      } catch (thrown) {
        if (thrown instanceof Interruption || thrown === claim.lost.reason) return { is: 'unsent' }
        if (mayExist(thrown)) return { is: 'unconfirmed', key, error: thrown }
        return { is: 'refused', error: asRushesError(thrown) }
      }
    },
    follow(step, id, created) {
      const { kind } = step.entry
      const follower = createRunFollower(
        { client, clock, recorder },
        { id, kind, model: step.model, ...created },
      )
      return {
        async poll(options) {
          const polled = await follower.poll(options)
          if (polled.is !== 'over') return polled
          const { state, error } = polled.run
          return { is: 'over', state, error, durationMs: polled.durationMs }
        },
        errorAtLimit: follower.errorAtLimit,
      }
    },
    async download({ path, entry, action }, state, beforePlace) {
      const target = { kind: 'template', template: path } as const
      const outputs = state.urls.map((url, at) => ({
        url,
        runId: state.id,
        kind: entry.kind,
        name: entry.rowName,
        freshUrl: async () => (await client.get(state.id, signal)).urls[at],
      }))
      try {
        const results = await downloader.download(outputs, {
          target,
          namer: createNamer(target),
          overwrite: action.replaces || overwrite,
          signal,
          earlier: recorder.filesOf(state.id),
          beforeMove: beforePlace,
        })
        const files = results.flatMap((each) => (each.ok ? [each.file] : []))
        recorder.recordFiles(state.id, files)
        sources.learn(state)
        for (const each of results) if (!each.ok) return each
        const [file, ...further] = files
        if (file === undefined) throw new Error('a succeeded run has an output')
        return {
          ok: true,
          file,
          further,
          warnings: results.flatMap((each) => (each.ok ? each.warnings : [])),
        }
      } catch (thrown) {
        return { ok: false, error: asRushesError(thrown).with({ runId: state.id }) }
      }
    },
  }
}
