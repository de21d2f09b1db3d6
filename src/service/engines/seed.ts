/**
 * The seed of a run. Some servers draw the same picture for the same request, so each run without a seed gets a random one
 * when it is accepted: it is part of the run, and a run that is sent again keeps it.
 */
import { randomInt } from 'node:crypto'
import { MAX_PROPERTIES } from '../../protocol/model-document.js'
import type { ModelDocument, ModelInput, ParameterSchema } from '../../protocol/models.js'

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
 * Adds the parameter `seed`, as if it were built in. Hosted services need a key, and some refuse a seed. `named`:
 * parameters that the document itself names, also those that it removes.
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
