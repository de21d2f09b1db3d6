/** One run: its outputs or what became of it, every field, and the commands that create it again. */
import type { ComponentChildren } from 'preact'
import { withoutData } from '../protocol/identity.js'
import { writeJson } from '../protocol/json.js'
import { isSentImage, mediaTypeOf } from '../protocol/media.js'
import { mediaParameters, mediaSources } from '../protocol/media-parameters.js'
import type { ModelDocument } from '../protocol/models.js'
import { capitalized } from '../protocol/text.js'
import { formatBytes, formatSeconds } from '../protocol/units.js'
import { commandsOf } from './commands.js'
import { credits, cut, labelOf, linkTo, plural, unitOf } from './format.js'
import { hx } from './hx.js'
import { type Frame, Page } from './layout.js'
import {
  Badge,
  Copy,
  canCancel,
  Icon,
  isStopping,
  isUnderWay,
  Notice,
  type ShownOutput,
  type ShownRun,
  Time,
} from './parts.js'

export interface RunView {
  readonly frame: Frame
  readonly run: ShownRun
  /** The whole prompt. */
  readonly prompt: string
  /** As it was sent, with the description of each file in place of its data: URL. Objects have their data: URLs. */
  readonly input: Readonly<Record<string, unknown>>
  /** Number of renders that crashed. */
  readonly crashes: number
  /** Undefined if the service no longer has the model. */
  readonly document: ModelDocument | undefined
  readonly baseUrl: string
  /** A sentence about what was just done. */
  readonly note?: string | undefined
}

export function RunPage(props: RunView) {
  const { frame, run, prompt, note } = props
  return (
    <Page
      frame={frame}
      path="/runs"
      title={cut(prompt, 60)}
      heading={<bdi>{cut(prompt, 140) || 'No prompt'}</bdi>}
    >
      {note && <Notice tone="info" title={note} />}
      <State {...props} />
      <Commands {...props} />
      {/* Outside the part that is replaced, so that they stay open. */}
      {canCancel(run) && <CancelDialog run={run} />}
    </Page>
  )
}

/** Everything that changes while the run is under way. It asks for itself until the run has ended. */
const State = (props: RunView) => {
  const { run } = props
  return (
    <section
      id="state"
      aria-label="Result"
      {...(isUnderWay(run) &&
        hx({ get: `/runs/${run.id}/state?version=${run.version}`, trigger: 'every 1s', swap: 'outerHTML' }))}
    >
      <div class="row meta">
        <Badge run={run} />
        <span>
          {capitalized(run.kind)} · {run.model}
        </span>
        <code>{run.id}</code>
        <Copy text={run.id}>Copy id</Copy>
        {canCancel(run) && (
          <button type="button" id="cancel-button" class="button small" popovertarget="cancel">
            Cancel
          </button>
        )}
      </div>
      <div class="columns">
        <div class="stack">
          <Result {...props} />
        </div>
        <Details {...props} />
      </div>
    </section>
  )
}

export const StateAnswer = (props: RunView) => (
  <>
    <State {...props} />
    {!isUnderWay(props.run) && (
      <>
        <hx-partial {...hx({ target: '#announcement', swap: 'textContent' })}>
          {`The run is now ${props.run.status}.`}
        </hx-partial>
        <hx-partial {...hx({ target: '#balance', swap: 'textContent' })}>
          {props.frame.balance.toLocaleString('en')}
        </hx-partial>
      </>
    )}
  </>
)

function Result({ run, prompt, document }: RunView) {
  switch (run.status) {
    case 'queued':
      return (
        <Waiting
          run={run}
          text={
            document === undefined
              ? 'Queued. This service does not have its model: the run waits for one that does.'
              : 'Waiting for its turn.'
          }
        />
      )
    case 'processing':
      return <Waiting run={run} text={(isStopping(run) && run.failure?.message) || renderingText(run)} />
    case 'failed':
      return (
        <Notice tone="bad" title="This run failed.">
          <p class="wrap">{run.failure?.message}</p>
          <p>
            <code>{run.failure?.code}</code>
          </p>
        </Notice>
      )
    case 'canceled':
      // The rest of the message says whether its price was refunded.
      return (
        <Notice tone="info" title="This run was canceled.">
          <p class="wrap">{run.failure?.message.replace(/^The run was canceled\. ?/, '')}</p>
        </Notice>
      )
    case 'succeeded':
      if (run.isRemoved)
        return (
          <div class="card empty">
            <Icon name="trash" size={28} />
            <p>The files of this run were deleted.</p>
          </div>
        )
      return (
        <div class={run.outputs.length > 1 ? 'outputs many' : 'outputs'}>
          {run.outputs.map((output, at) => (
            <Output key={output.url} run={run} output={output} index={at} prompt={prompt} />
          ))}
        </div>
      )
  }
}

const renderingText = ({ progress, queuePosition }: ShownRun): string => {
  if (queuePosition !== undefined && queuePosition > 0)
    return `Waiting at the server of the model, with ${plural(queuePosition, 'job')} before it.`
  return progress === undefined ? 'Rendering.' : `Rendering, ${progress} %`
}

const Waiting = ({ run, text }: { readonly run: ShownRun; readonly text: string }) => (
  <div class="card empty waiting">
    <Icon name={run.kind} size={28} />
    <p>{text}</p>
    <progress
      aria-label="Progress"
      max={100}
      {...(run.status === 'queued' ? { value: 0 } : run.progress !== undefined && { value: run.progress })}
    />
    <p class="muted">Your result will appear here.</p>
  </div>
)

interface OutputProps {
  readonly run: ShownRun
  readonly output: ShownOutput
  readonly index: number
  readonly prompt: string
}

function Output({ run, output, index, prompt }: OutputProps) {
  const { url, contentType, savedName } = output
  const [width, height] = run.ratio.map((each) => each * 100)
  const isImage = contentType.startsWith('image/')
  return (
    <figure class="card">
      {isImage ? (
        <a href={url}>
          <img src={url} alt={`Output ${index + 1}: ${cut(prompt, 200)}`} width={width} height={height} />
        </a>
      ) : contentType.startsWith('video/') ? (
        <video
          src={url}
          controls
          loop
          playsInline
          preload="metadata"
          aria-label={`Output ${index + 1}`}
          width={width}
          height={height}
        />
      ) : contentType.startsWith('audio/') ? (
        <audio src={url} controls preload="metadata" aria-label={`Output ${index + 1}`} />
      ) : null}
      <figcaption>
        <span class="wrap">
          {output.name}
          <small>
            {contentType} · {formatBytes(output.bytes)}
          </small>
        </span>
        <a class="button small" href={url} download={savedName}>
          <Icon name="download" size={14} /> Download
        </a>
      </figcaption>
    </figure>
  )
}

function Details({ run, input: whole, prompt, crashes, document }: RunView) {
  const input = withoutData(whole) as RunView['input']
  const { prompt: _, ...others } = input
  const sent = mediaSources(input, mediaParameters(document?.input).keys()).map(({ value }) => value)
  const defaults = Object.entries(document?.input.properties ?? {}).flatMap(([name, schema]) =>
    name in input || !('default' in schema) || schema.default === undefined
      ? []
      : [[name, schema.default] as const],
  )
  return (
    <aside class="card details">
      <h2>Details</h2>
      <dl>
        {Object.entries(others).map(([name, value]) => (
          <Entry key={name} name={labelOf(name)}>
            {valueText(run, name, value, sent)}
          </Entry>
        ))}
        {defaults.map(([name, value]) => (
          <Entry key={name} name={labelOf(name)}>
            {valueText(run, name, value, sent)} <small>default</small>
          </Entry>
        ))}
        <Entry name="Price">
          {credits(run.price)} {run.isRefunded && <small>refunded</small>}
        </Entry>
        <Entry name="API key">{run.key ?? 'None (created in the console)'}</Entry>
        {crashes > 0 && <Entry name="Crashes">{crashes}</Entry>}
      </dl>
      <ol class="timeline">
        <Moment name="Created" ms={run.createdAtMs} />
        {run.startedAtMs !== undefined && <Moment name="Started" ms={run.startedAtMs} />}
        {run.finishedAtMs !== undefined && (
          <Moment
            name={capitalized(run.status)}
            ms={run.finishedAtMs}
            status={run.status}
            about={run.startedAtMs && `${formatSeconds(run.finishedAtMs - run.startedAtMs)} rendering`}
          />
        )}
      </ol>
      <h2>Prompt</h2>
      <p class="prompt wrap" tabIndex={0} role="region" aria-label="Prompt">
        <bdi>{prompt}</bdi>
      </p>
      <Copy text={prompt}>Copy prompt</Copy>
    </aside>
  )
}

/** An image that was sent as data is a small picture. `sent`: the sources of the run, in their order. */
function valueText(run: ShownRun, name: string, value: unknown, sent: readonly unknown[]): ComponentChildren {
  if (!Array.isArray(value) && !sent.includes(value))
    return typeof value === 'object' ? writeJson(value) : `${String(value)}${unitOf(name)}`
  return [value].flat().map((each: unknown, at) =>
    isSentImage(each) && sent.includes(each) ? (
      <SentFile
        key={at}
        url={`/runs/${run.id}/references/${sent.indexOf(each)}`}
        type={each.content_type}
        number={at + 1}
      />
    ) : (
      <span key={at} class="line">
        {/^https?:/.test(String(each)) ? <a href={String(each)}>{cut(String(each), 80)}</a> : textOf(each)}
      </span>
    ),
  )
}

const textOf = (value: unknown): string => (typeof value === 'object' ? writeJson(value) : String(value))

interface SentFileProps {
  readonly url: string
  readonly type: string
  readonly number: number
}
const SentFile = ({ url, type, number }: SentFileProps) =>
  mediaTypeOf(type) === 'image' ? (
    <img class="sent" src={url} alt={`Image ${number}`} height="48" />
  ) : (
    <a class="line" href={url}>
      File {number} ({type})
    </a>
  )

const Entry = ({ name, children }: { readonly name: string; readonly children: ComponentChildren }) => (
  <div>
    <dt>{name}</dt>
    <dd class="wrap">{children}</dd>
  </div>
)

interface MomentProps {
  readonly name: string
  readonly ms: number
  readonly status?: string
  readonly about?: string | undefined | 0
}
const Moment = ({ name, ms, status, about }: MomentProps) => (
  <li class={status}>
    <span>
      {name}
      {about && <small>{about}</small>}
    </span>
    <Time ms={ms} />
  </li>
)

const Commands = ({ run, input, document, baseUrl }: RunView) => (
  <section class="card commands">
    <h2>Create it again</h2>
    {commandsOf({ ...run, input }, baseUrl, document).map(({ name, code }, at) => (
      <details key={name} name="commands" open={at === 0}>
        <summary>{name}</summary>
        <div class="code">
          <pre tabIndex={0} role="region" aria-label={`Command for ${name}`}>
            <code>{code}</code>
          </pre>
          <Copy text={code}>Copy</Copy>
        </div>
      </details>
    ))}
  </section>
)

/** Opened by a button with `popovertarget`, also without a script. */
const CancelDialog = ({ run }: { readonly run: ShownRun }) => (
  <div id="cancel" popover="auto" role="dialog" aria-labelledby="cancel-title" class="card dialog">
    <h2 id="cancel-title">Cancel this run?</h2>
    <p>
      If it has not started by then, its price of {credits(run.price)} is refunded. The page says afterwards
      what happened.
    </p>
    <form method="post" action={`/runs/${run.id}/cancel`} class="row">
      <button type="submit" class="button danger">
        Cancel the run
      </button>
      <button type="button" class="button" popovertarget="cancel" popovertargetaction="hide">
        Keep it
      </button>
    </form>
  </div>
)
