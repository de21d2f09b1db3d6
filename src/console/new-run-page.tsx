/** The form of a new run, made from the document of its model. A form that is drawn again has its texts, and no files. */
import type { ComponentChildren } from 'preact'
import { IMAGE_TYPES, MEDIA_NOUNS, type MediaType } from '../protocol/media.js'
import { mediaParameters } from '../protocol/media-parameters.js'
import { describeType, listedValues, type ModelDocument, type ParameterSchema } from '../protocol/models.js'
import { capitalized } from '../protocol/text.js'
import { credits, labelOf, unitOf } from './format.js'
import { hx } from './hx.js'
import { type Assets, Page } from './layout.js'
import { Field, Icon, invalid, Notice, Problem } from './parts.js'

/** Texts of the fields. */
export type Values = Readonly<Record<string, string>>

export interface NewRunView {
  readonly assets: Assets
  readonly models: readonly ModelDocument[]
  readonly model: ModelDocument
  readonly values: Values
  /** By parameter; '' for the whole form. */
  readonly problems: Readonly<Record<string, string>>
  readonly price: number
  /** The same for each try of one form: a form that is sent twice creates its run once. */
  readonly formKey: string
}

export const NewRunPage = (props: NewRunView) => (
  <Page assets={props.assets} path="/new" title="New run">
    {Object.keys(props.problems).length > 0 && (
      <Notice
        tone="bad"
        title={props.problems[''] ?? 'Nothing was created. Correct the fields that have an error.'}
      />
    )}
    <NewRunForm {...props} />
  </Page>
)

function NewRunForm(props: NewRunView) {
  const { model, values, problems, price, formKey } = props
  const { properties } = model.input
  const media = mediaParameters(model.input)
  const options = Object.entries(properties).filter(
    ([name, { type }]) => name !== 'prompt' && !media.has(name) && type !== 'other',
  )
  return (
    // To another URL than its own: a POST to it would drop it from the cache, and Back would bring a new key.
    <form id="new-run" method="post" action="/runs" encType="multipart/form-data">
      {/* Enter in a field presses the first button of a form. */}
      <button type="submit" class="hidden" tabIndex={-1} aria-hidden="true">
        Create
      </button>
      <input type="hidden" name="form_key" value={formKey} />
      <div class="columns even">
        <div class="stack">
          {properties.prompt && (
            <Field id="f-prompt" label="Prompt" problem={problems.prompt}>
              <textarea
                id="f-prompt"
                name="prompt"
                rows={7}
                placeholder="A red fox in the snow at dusk"
                {...invalid('f-prompt', problems.prompt)}
              >
                {/* The parser drops one newline at the beginning. */}
                {`\n${values.prompt ?? ''}`}
              </textarea>
            </Field>
          )}
          {[...media].map(([name, type]) => (
            <Files key={name} {...props} name={name} type={type} />
          ))}
        </div>
        <div class="stack">
          <ModelChoice {...props} />
          {options.map(([name, schema]) => (
            <Option
              key={name}
              name={name}
              schema={schema}
              value={values[name]}
              isRequired={model.input.required.includes(name)}
              problem={problems[name]}
            />
          ))}
        </div>
      </div>
      <div class="submit">
        <Price price={price} />
        <button type="submit" class="button primary">
          Create
        </button>
      </div>
    </form>
  )
}

/** A choice changes the fields below. */
const ModelChoice = ({ models, model }: NewRunView) => (
  <fieldset
    {...hx({
      post: '/new/form',
      trigger: 'change',
      target: '#new-run',
      select: '#new-run',
      swap: 'outerHTML',
      encoding: 'form',
    })}
  >
    <legend>Model</legend>
    <div class="faces">
      {models.map(({ name, kind }) => (
        <Face key={name} group="model" value={name} isChosen={name === model.name}>
          <Icon name={kind} /> {capitalized(kind)} <small>{name}</small>
        </Face>
      ))}
    </div>
    <button type="submit" class="button small unscripted" formaction="/new/form" formNoValidate>
      Show the fields of this model
    </button>
  </fieldset>
)

/** Asks for itself when a field of the form changes. It sends no files. */
export const Price = ({ price }: Pick<NewRunView, 'price'>) => (
  <output
    id="price"
    {...hx({
      post: '/new/price',
      trigger: 'input from:#new-run delay:150ms',
      include: '#new-run',
      swap: 'outerHTML',
      encoding: 'form',
      sync: 'this:replace',
    })}
  >
    <strong>{credits(price)}</strong>
  </output>
)

interface FaceProps {
  readonly group: string
  readonly value: string
  readonly isChosen: boolean
  readonly children: ComponentChildren
}
const Face = ({ group, value, isChosen, children }: FaceProps) => (
  <label class="face">
    <input type="radio" id={`f-${group}-${value}`} name={group} value={value} checked={isChosen} />
    <span>{children}</span>
  </label>
)

interface OptionProps {
  readonly name: string
  readonly schema: ParameterSchema
  readonly value: string | undefined
  readonly isRequired: boolean
  readonly problem: string | undefined
}

/** The default is the empty value, which is not sent: another model has its own. A required parameter is always sent. */
function Option({ name, schema, value, isRequired, problem }: OptionProps) {
  const standard = 'default' in schema && schema.default !== undefined ? String(schema.default) : ''
  const listed = schema.type === 'boolean' ? ['true', 'false'] : listedValues(schema)
  const id = `f-${name}`
  const hint = hintOf(schema)
  const common = { id, name, required: isRequired, placeholder: standard, ...invalid(id, problem) }
  if (listed === undefined)
    return (
      <Field id={id} label={labelOf(name)} hint={hint} problem={problem}>
        {schema.type === 'integer' || schema.type === 'number' ? (
          // Not of type `number`, which drops the digits of large ones.
          <input class="narrow" inputMode="decimal" value={value} {...common} />
        ) : (
          <textarea rows={schema.type === 'array' ? 3 : 2} {...common}>{`\n${value ?? ''}`}</textarea>
        )}
      </Field>
    )
  const choices = listed.map((each) => ({
    value: each === standard && !isRequired ? '' : each,
    label: schema.type === 'boolean' ? (each === 'true' ? 'On' : 'Off') : `${each}${unitOf(name)}`,
  }))
  if (!isRequired && standard === '') choices.unshift({ value: '', label: 'Default' })
  const typed = value || standard
  const chosen = typed === standard && !isRequired ? '' : typed
  return (
    <fieldset>
      <legend>{labelOf(name)}</legend>
      <div class="faces">
        {choices.map((each) => (
          <Face key={each.value} group={name} value={each.value} isChosen={each.value === chosen}>
            {each.label}
          </Face>
        ))}
      </div>
      <small>{hint}</small>
      <Problem id={id} text={problem} />
    </fieldset>
  )
}

const hintOf = (schema: ParameterSchema): string =>
  [
    schema.description,
    schema.type === 'array' ? 'one per line' : listedValues(schema) === undefined && describeType(schema),
  ]
    .filter(Boolean)
    .join(', ')

const ACCEPT = { image: IMAGE_TYPES.join(','), video: 'video/*', audio: 'audio/*', file: undefined }

interface FilesProps extends NewRunView {
  readonly name: string
  readonly type: MediaType
}

/** A file field over its whole area takes files that are dropped on it, without a script. */
function Files({ model, name, type, values, problems }: FilesProps) {
  const schema = model.input.properties[name]
  const isList = schema?.type === 'array'
  const about = schema?.description || labelOf(name)
  const id = `f-${name}`
  const noun = isList ? `${type === 'audio' ? 'audio file' : type}s` : MEDIA_NOUNS[type]
  return (
    <fieldset>
      <legend>{about}</legend>
      <div class="drop">
        <Icon name="upload" size={18} />
        <p id={`${id}-hint`}>
          <span class="link">Choose {noun}</span> or drop {isList ? 'them' : 'it'} here
          {type === 'image' && ': PNG, JPEG, WebP, GIF or AVIF'}
        </p>
        <input
          id={`files.${name}`}
          type="file"
          name={`files.${name}`}
          multiple={isList}
          accept={ACCEPT[type]}
          aria-label={about}
          aria-describedby={`${id}-hint`}
        />
      </div>
      <textarea
        name={name}
        rows={isList ? 2 : 1}
        placeholder={isList ? `or URLs of ${noun}, one per line` : `or the URL of ${noun}`}
        aria-label={isList ? `URLs of ${noun}, one per line` : `URL of ${noun}`}
        {...invalid(id, problems[name])}
      >
        {`\n${values[name] ?? ''}`}
      </textarea>
      <Problem id={id} text={problems[name]} />
    </fieldset>
  )
}
