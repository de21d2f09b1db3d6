/** The models of the local service of `--local`: that of `--engine`, then those of `local.models`, else its previews. */
import { resolve } from 'node:path'
import type { ModelDocument } from '../../protocol/models.js'
import type { ModelSet } from '../../service/models/model-set.js'
import { PREVIEW_MODELS } from '../../service/models/served-model.js'
import type { Env } from '../process/io.js'
import { addedModel, type LocalEngine } from './local-engine.js'

export interface LocalModelsOptions {
  /** Value of the setting. A relative path, which was written by hand, is relative to the config folder. */
  readonly path: string | undefined
  readonly configFolder: string
  readonly env: Env
  /** The engine of `--engine`. */
  readonly engine?: LocalEngine | undefined
}

/** Throws `usage` with all problems of the documents. Does not need the files and keys of their engines. */
export async function localDocuments(options: LocalModelsOptions): Promise<readonly ModelDocument[]> {
  const isPreview = options.path === undefined && options.engine === undefined
  const { models } = isPreview ? { models: PREVIEW_MODELS } : await openLocalModels(options, false)
  return models.map(({ document }) => document)
}

/** `readsEngines`: whether runs will be rendered. Problems of `--engine` are reported in both cases. */
export async function openLocalModels(
  { path, configFolder, env, engine }: LocalModelsOptions,
  readsEngines: boolean,
): Promise<ModelSet> {
  const { openModelSet } = await import('../../service/models/model-set.js')
  return openModelSet({
    path: path === undefined ? undefined : resolve(configFolder, path),
    added: engine && addedModel(engine),
    env,
    readsEngines,
    isCharged: false,
  })
}
