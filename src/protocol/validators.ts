/**
 * The model schemas as functions. The build puts Ajv's own code for them in this file's place (`build.mjs`): compiling
 * them at every start took half as long as Node itself.
 */
import { Ajv, type ValidateFunction } from 'ajv'
import { KINDS, type Kind, MODEL_INPUTS } from './models.js'

/** What `problemOfAjv` (validate.ts) reads: every error, with the schema that it comes from. */
export const AJV_OPTIONS = { allErrors: true, verbose: true } as const

const ajv = new Ajv(AJV_OPTIONS)

export const VALIDATORS: Readonly<Record<Kind, ValidateFunction>> = Object.fromEntries(
  KINDS.map((kind) => [kind, ajv.compile(MODEL_INPUTS[kind])]),
) as Record<Kind, ValidateFunction>
