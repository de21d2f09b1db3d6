/** How servers of the images interface differ, as read in their sources (docs/engines.md). */
import { writeJson } from '../../../protocol/json.js'
import { isObject } from '../../../protocol/parse.js'
import { nested } from '../sent-parameters.js'
import type { SourceFile } from '../upstream/request-body.js'
import { errorTextOf, type UpstreamError } from '../upstream/upstream-error.js'

/** Newer models of OpenAI always send base64, and refuse the field that asks for it. */
export function refusesResponseFormat({ status, answer }: UpstreamError): boolean {
  if (status !== 400 && status !== 422) return false
  const { param } = isObject(answer) && isObject(answer.error) ? answer.error : {}
  return param === 'response_format' || (errorTextOf(answer) ?? '').includes('response_format')
}

/**
 * LocalAI has no endpoint for edits. The error of another server with status 404 is about the model. LocalAI may hide its
 * errors; `isReady` is false for a server that has shown nothing yet, whose proxy may send an empty answer too.
 */
export const lacksEdits = ({ status, answer }: UpstreamError, isReady: boolean): boolean =>
  status === 404 && (errorTextOf(answer) === 'Resource not found' || (isReady && answer === ''))

const TAG = 'sd_cpp_extra_args'

/** Removes the element with which a prompt sets parameters of stable-diffusion.cpp: `send` decides which are sent. */
export const withoutExtraArguments = (prompt: string): string =>
  prompt
    .replace(new RegExp(`<${TAG}>[^<]*</${TAG}>`, 'gi'), '')
    // A space, because the rest could form another element.
    .replace(new RegExp(`</?${TAG}>?|${TAG}`, 'gi'), ' ')

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
  return extra.length === 0 ? prompt : `${prompt}<${TAG}>${json}</${TAG}>`
}

/** The server skips references that it cannot decode, and draws without them. */
export function checkSdcppReferences(references: readonly SourceFile[]): void {
  for (const [index, { contentType }] of references.entries())
    if (contentType !== 'image/png' && contentType !== 'image/jpeg')
      throw new Error(
        `Reference image ${index + 1} is ${contentType}, which the model's server cannot read. Use PNG or JPEG.`,
      )
}
