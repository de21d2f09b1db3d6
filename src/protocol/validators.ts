/**
 * The compiled model schemas. The build replaces this file with the code that Ajv generates (`build.mjs`), because
 * compiling at each start took half as long as starting Node.
 */
import { Ajv, type ValidateFunction } from 'ajv'
import { KINDS, type Kind, MODEL_INPUTS } from './models.js'

/** `problemOfAjv` (validate.ts) needs all errors, with their schemas. */
export const AJV_OPTIONS = { allErrors: true, verbose: true } as const

const ajv = new Ajv(AJV_OPTIONS)

export const VALIDATORS: Readonly<Record<Kind, ValidateFunction>> = Object.fromEntries(
  KINDS.map((kind) => [kind, ajv.compile(MODEL_INPUTS[kind])]),
) as Record<Kind, ValidateFunction>
