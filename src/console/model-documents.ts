/** The documents of the service's models, kept while the page is open. */
import { CONSOLE_PATHS, type ModelList } from '../protocol/console.js'
import type { ModelDocument } from '../protocol/models.js'
import { printable } from '../protocol/text.js'
import { request } from './api.js'
import type { Choice } from './components/field.js'
import { capitalized } from './format.js'
import { type Resource, useResource } from './resource.js'
import { createStore } from './store.js'

export type Models = ModelList['models']

const modelsStore = createStore<Models | undefined>(undefined)

/** Reads the documents again, since another version of the service may have others. */
export const useModels = (): Resource<Models> =>
  useResource(
    async (signal) => (await request<ModelList>('GET', CONSOLE_PATHS.models, { signal })).models,
    [],
    modelsStore,
  )

export const findModel = (models: Models | undefined, name: string | undefined): ModelDocument | undefined =>
  models?.find((each) => each.name === name)

export const modelChoices = (models: readonly ModelDocument[]): readonly Choice[] =>
  models.map(({ name, kind }) => ({ value: name, label: `${capitalized(kind)}: ${printable(name)}` }))
