/** A model of a service: its document, how this node renders it, and the seed of its runs. */
import { randomInt } from 'node:crypto'
import { MAX_PROPERTIES } from '../../protocol/model-document.js'
import {
  builtInSchema,
  KINDS,
  type Kind,
  type ModelDocument,
  type ModelInput,
  type ModelSchema,
  type ParameterSchema,
} from '../../protocol/models.js'
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

const MAX_SEED = 2 ** 31 - 1

const SEED: ParameterSchema = {
  type: 'integer',
  minimum: 0,
  maximum: MAX_SEED,
  description: 'Seed; random if not set',
}

/** Engines that send a parameter `seed`, if they have a place for it. */
const SENDERS: readonly unknown[] = ['preview', 'images', 'sdapi', 'sdcpp', 'comfyui']

/**
 * Adds the parameter `seed`, as if it were built in: some servers draw the same picture for the same request. Hosted services
 * need a key, and some refuse a seed. `named`: parameters that the document itself names, also those that it removes.
 */
export function withSeedParameter(
  document: ModelDocument,
  { type, key_env }: Readonly<Record<string, unknown>>,
  named: readonly string[],
): ModelDocument {
  const { input } = document
  const { properties } = input
  const isFull = named.includes('seed') || Object.keys(properties).length >= MAX_PROPERTIES
  const isHosted = key_env !== undefined && type !== 'sdcpp'
  if (isFull || isHosted || !SENDERS.includes(type)) return document
  return { ...document, input: { ...input, properties: { ...properties, seed: SEED } } }
}

/** Adds a random seed to an input without one, if the model has the parameter and no default for it. */
export function withSeed(input: ModelInput, { input: { properties } }: ModelDocument): ModelInput {
  const schema = Object.hasOwn(properties, 'seed') ? properties.seed : undefined
  if (Object.hasOwn(input, 'seed') || schema?.type !== 'integer' || 'default' in schema) return input
  const { enum: listed, minimum = 0, maximum = MAX_SEED } = schema
  if (listed !== undefined) return { ...input, seed: listed[randomInt(listed.length)] }
  const lowest = minimum > 0 ? minimum : 0
  const highest = maximum < MAX_SEED ? maximum : MAX_SEED
  if (highest <= lowest) return { ...input, seed: maximum < lowest ? maximum : lowest }
  return { ...input, seed: randomInt(Math.ceil(Number(lowest)), Math.floor(Number(highest)) + 1) }
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
