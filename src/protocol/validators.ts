/**
 * The compiled model schemas. The build replaces this file by the code that Ajv generates (`build.mjs`), since
 * compiling at every start took half as long as starting Node.
 */
import { Ajv, type ValidateFunction } from 'ajv'
import { KINDS, type Kind, MODEL_INPUTS } from './models.js'

/** `problemOfAjv` (validate.ts) needs every error, with the schema that it comes from. */
export const AJV_OPTIONS = { allErrors: true, verbose: true } as const

const ajv = new Ajv(AJV_OPTIONS)

export const VALIDATORS: Readonly<Record<Kind, ValidateFunction>> = Object.fromEntries(
  KINDS.map((kind) => [kind, ajv.compile(MODEL_INPUTS[kind])]),
) as Record<Kind, ValidateFunction>
