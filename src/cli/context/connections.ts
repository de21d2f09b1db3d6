/** Parts of the context that are opened when a command first needs them: the local service and the recorder. */
import { usageError } from '../../errors.js'
import type { Fetch } from '../../host/http.js'
import type { Journal } from '../../journal/index.js'
import type { createRecorder, Recorder } from '../../runs/recorder.js'
import type { Engine } from '../../service/engines/engine.js'
import type { LocalModelsOptions } from '../models/local-models.js'
import type { LocalOptions, LocalService } from './local-service.js'

interface OpenLocalOptions extends Omit<LocalOptions, 'models' | 'engine'> {
  readonly localModels: LocalModelsOptions
  fetch(): Promise<Fetch>
  /** Creates the preview renderer. */
  engine(): Promise<Engine>
}

/** Opens the local service of `--local` with its models. */
export async function openLocal({
  localModels,
  fetch,
  engine,
  ...options
}: OpenLocalOptions): Promise<LocalService & { checkModel(model: string): void }> {
  const [{ openLocalService }, { openLocalModels }] = await Promise.all([
    import('./local-service.js'),
    import('../models/local-models.js'),
  ])
  const { clock, env, render } = options
  const set = await openLocalModels(localModels, render)
  const preview = await engine()
  const parts = { env, clock, fetch: await fetch(), urls: [], preview: () => preview }
  const service = await openLocalService({
    ...options,
    models: set.models,
    engine: render ? set.createEngine(parts) : preview,
  })
  return {
    ...service,
    checkModel(model) {
      const { problem } = set.models.find(({ document }) => document.name === model) ?? {}
      if (problem !== undefined) throw usageError(`The model ${model} cannot run. ${problem}`)
    },
  }
}

/** Lock timeout of the journal for a command that can work without it. */
const FIRST_LOCK_TIMEOUT_MS = 2_000

/** Throws `usage` only for a journal of a newer format. */
export async function openRecorder(
  options: Omit<Parameters<typeof createRecorder>[0], 'failure'>,
  openJournal: (lockTimeoutMs: number) => Promise<Journal>,
  signal: AbortSignal,
): Promise<Recorder> {
  const recorder = await import('../../runs/recorder.js')
  let failure: unknown
  try {
    await openJournal(FIRST_LOCK_TIMEOUT_MS)
  } catch (error) {
    const { isNewerState } = await import('./state.js')
    if (isNewerState(error) || error === signal.reason) throw error
    failure = error
  }
  return recorder.createRecorder({ ...options, failure })
}
