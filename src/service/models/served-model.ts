/** A model of a service: its document, and how this node renders it. */

import {
  builtInSchema,
  KINDS,
  type Kind,
  type ModelDocument,
  type ModelSchema,
} from '../../protocol/models.js'
import { withSeedParameter } from '../engines/seed.js'
import { LOCAL_MODELS } from '../rules/names.js'
import type { CarriedModel } from '../store/run.js'

export interface ServedModel {
  readonly document: ModelDocument
  /** Maximum number of runs of this model that one node renders at the same time. Undefined: the node's own limit. */
  readonly concurrency?: number | undefined
  /** Whether a server renders its runs, which then use no slot of the node. */
  readonly isRemote?: boolean
  /** Whether a provider may charge for its runs. False: a canceled run has certainly cost nothing. */
  readonly mayCost?: boolean
  /** With `--local`: why all of its runs would fail, such as a key that is not set. */
  readonly problem?: string | undefined
  /** What its runs carry. Undefined: they have the model that the service has under its name. */
  readonly carried?: CarriedModel | undefined
}

/** Adds defaults, which the interface does not publish, to a built-in schema. */
function withDefaults(kind: Kind, defaults: Readonly<Record<string, string>>): ModelSchema {
  const schema = builtInSchema(kind)
  const properties = Object.entries(schema.properties).map(([name, each]) => [
    name,
    Object.hasOwn(defaults, name) ? { ...each, default: defaults[name] } : each,
  ])
  return { ...schema, properties: Object.fromEntries(properties) }
}

/** The documents of the built-in preview models, with the prices in credits of docs/service.md. */
export const PREVIEW_DOCUMENTS: Readonly<Record<Kind, ModelDocument>> = {
  video: {
    name: LOCAL_MODELS.video,
    kind: 'video',
    input: withDefaults('video', { aspect_ratio: '16:9', resolution: '720p', duration: '5' }),
    price: { run: 5, factors: { duration: { 10: 2 }, resolution: { '1080p': 2 } } },
    default: true,
  },
  image: {
    name: LOCAL_MODELS.image,
    kind: 'image',
    input: withDefaults('image', { aspect_ratio: '1:1', quality: 'basic' }),
    price: { run: 1, factors: { quality: { high: 2 } } },
    default: true,
  },
}

/** Returns the document of a model that the preview renderer draws, with its seed. */
export const previewDocument = (document: ModelDocument): ModelDocument =>
  withSeedParameter(document, { type: 'preview' }, [])

export const PREVIEW_MODELS: readonly ServedModel[] = KINDS.map((kind) => ({
  document: previewDocument(PREVIEW_DOCUMENTS[kind]),
}))

export const findDocument = (models: readonly ModelDocument[], name: string): ModelDocument | undefined =>
  models.find((document) => document.name === name)

/** Returns the default model of a kind: the one that says so, else the first. */
export function defaultDocument(models: readonly ModelDocument[], kind: Kind): ModelDocument | undefined {
  const ofKind = models.filter((document) => document.kind === kind)
  return ofKind.find((document) => document.default) ?? ofKind[0]
}
