/** How servers of the images interface differ, as read in their sources (docs/engines.md). */
import { writeJson } from '../../../protocol/json.js'
import { isObject } from '../../../protocol/parse.js'
import { shortened } from '../../../protocol/text.js'
import { nested } from '../sent-parameters.js'
import { EXTRA_ARGUMENTS } from '../texts.js'
import { errorTextOf, UpstreamError } from '../upstream/upstream-error.js'

/** Newer models of OpenAI always send base64, and refuse the field that asks for it. */
export function refusesResponseFormat({ status, answer }: UpstreamError): boolean {
  if (status !== 400 && status !== 422) return false
  const { param } = isObject(answer) && isObject(answer.error) ? answer.error : {}
  return param === 'response_format' || (errorTextOf(answer) ?? '').includes('response_format')
}

/**
 * LocalAI has no endpoint for edits. Only its own words prove that: an empty answer may come from a proxy, and another
 * server would ignore references that are sent as LocalAI takes them.
 */
export const lacksEdits = ({ status, answer }: UpstreamError): boolean =>
  status === 404 && errorTextOf(answer) === 'Resource not found'

/** Names of other servers for parameters of stable-diffusion.cpp. */
const SDCPP_FIELDS: Readonly<Record<string, string>> = {
  steps: 'sample_params.sample_steps',
  step: 'sample_params.sample_steps',
  num_inference_steps: 'sample_params.sample_steps',
  cfg_scale: 'sample_params.guidance.txt_cfg',
  guidance_scale: 'sample_params.guidance.txt_cfg',
  distilled_guidance: 'sample_params.guidance.distilled_guidance',
}
/** Fields that stable-diffusion.cpp reads from the body. It reads all others only from the prompt. */
const SDCPP_BODY: readonly string[] = ['model', 'n', 'size', 'output_format', 'output_compression']

/** Adds the parameters to the prompt, on one line. */
export function sdcppPrompt(
  prompt: string,
  fields: readonly (readonly [field: string, value: unknown])[],
): string {
  const extra = fields
    .filter(([field]) => !SDCPP_BODY.includes(field))
    .map(([field, value]) => [SDCPP_FIELDS[field] ?? field, value] as const)
  // The value of a parameter may contain the end of the element.
  const json = writeJson(nested(extra)).replaceAll('<', '\\u003c')
  return extra.length === 0 ? prompt : `${prompt}<${EXTRA_ARGUMENTS}>${json}</${EXTRA_ARGUMENTS}>`
}

/** Adds the parameters to an error of stable-diffusion.cpp that does not name the wrong one. */
export function withSentFields(
  error: UpstreamError,
  fields: readonly (readonly [field: string, value: unknown])[],
): UpstreamError {
  const { message, status, answer } = error
  if (!['invalid params', 'invalid generation parameters'].includes(errorTextOf(answer) ?? '')) return error
  const sent = fields.map(([field, value]) => `${field} ${shortened(writeJson(value), 40)}`).join(', ')
  return new UpstreamError(`${message} (sent: ${sent})`, { status, answer })
}
