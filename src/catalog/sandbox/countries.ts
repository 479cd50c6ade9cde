import type { Region } from '../package.js';

/**
 * Roaming cost level of a country. Real wholesale rates differ by an order of magnitude between, say, Spain and the
 * Cook Islands. Partners who test margins and price filters need that spread.
 */
export type PriceTier = 'budget' | 'standard' | 'premium' | 'remote';

/** A mobile operator with the radio generations that roaming customers get on it, oldest first. */
interface Operator {
  readonly name: string;
  readonly generations: readonly string[];
}

/** A country in which the sandbox sells. */
export interface SandboxCountry {
  /** ISO 3166-1 alpha-2 (D10). */
  readonly code: string;
  readonly name: string;
  readonly priceTier: PriceTier;
  /** A country can belong to several regions: Croatia is in `europe` and `balkans`. */
  readonly regions: readonly Region[];
  /** Most preferred first; regional and global packages use only the first. Never empty. */
  readonly operators: readonly [Operator, ...Operator[]];
}

type NewestGeneration = '5G' | '4G';

// In 5G countries 3G is mostly switched off; in 4G countries 3G still fills the gaps.
const GENERATIONS: Readonly<Record<NewestGeneration, readonly string[]>> = {
  '5G': ['4G', '5G'],
  '4G': ['3G', '4G'],
};

/**
 * Builds a row of the country tables. Operators are grouped by the newest generation they offer to roamers.
 *
 * @throws Error when the row names no operator: a package without a network cannot be sold
 */
export function country(
  code: string,
  name: string,
  priceTier: PriceTier,
  regions: readonly Region[],
  operatorNames: Readonly<Partial<Record<NewestGeneration, readonly string[]>>>,
): SandboxCountry {
  const withGeneration = (newest: NewestGeneration): Operator[] =>
    (operatorNames[newest] ?? []).map((operator) => ({ name: operator, generations: GENERATIONS[newest] }));
  const [preferred, ...others] = [...withGeneration('5G'), ...withGeneration('4G')];
  if (preferred === undefined) throw new Error(`sandbox country ${code} has no operator`);
  return { code, name, priceTier, regions, operators: [preferred, ...others] };
}

/** Africa and its islands. */
const AFRICAN_COUNTRIES = [
  country('AO', 'Angola', 'premium', ['africa'], { '5G': ['Unitel', 'Africell'] }),
  country('BF', 'Burkina Faso', 'remote', ['africa'], { '4G': ['Orange', 'Moov Africa'] }),
  country('BJ', 'Benin', 'premium', ['africa'], { '4G': ['MTN', 'Moov Africa'] }),
  country('BW', 'Botswana', 'premium', ['africa'], { '5G': ['Mascom', 'Orange'] }),
  country('CD', 'DR Congo', 'premium', ['africa'], { '4G': ['Vodacom', 'Orange', 'Airtel'] }),
  country('CI', "Côte d'Ivoire", 'premium', ['africa'], { '4G': ['Orange', 'MTN'] }),
  country('CM', 'Cameroon', 'premium', ['africa'], { '4G': ['MTN', 'Orange'] }),
  country('CV', 'Cape Verde', 'remote', ['africa'], { '4G': ['CVMóvel', 'Unitel T+'] }),
  country('DZ', 'Algeria', 'premium', ['africa'], { '4G': ['Djezzy', 'Ooredoo', 'Mobilis'] }),
  country('EG', 'Egypt', 'standard', ['africa', 'middle-east'], { '5G': ['Vodafone', 'Orange', 'e&'] }),
  country('ET', 'Ethiopia', 'premium', ['africa'], { '5G': ['Ethio telecom'], '4G': ['Safaricom'] }),
  country('GA', 'Gabon', 'remote', ['africa'], { '4G': ['Airtel', 'Moov Africa'] }),
  country('GH', 'Ghana', 'standard', ['africa'], { '4G': ['MTN', 'Telecel'] }),
  country('GM', 'Gambia', 'remote', ['africa'], { '4G': ['Africell', 'QCell'] }),
  country('KE', 'Kenya', 'standard', ['africa'], { '5G': ['Safaricom', 'Airtel'] }),
  country('LR', 'Liberia', 'remote', ['africa'], { '4G': ['Orange', 'Lonestar MTN'] }),
  country('LS', 'Lesotho', 'premium', ['africa'], { '5G': ['Vodacom'], '4G': ['Econet'] }),
  country('MA', 'Morocco', 'standard', ['africa'], { '5G': ['Maroc Telecom', 'Orange', 'inwi'] }),
  country('MG', 'Madagascar', 'premium', ['africa'], { '5G': ['Yas'], '4G': ['Orange', 'Airtel'] }),
  country('ML', 'Mali', 'remote', ['africa'], { '4G': ['Orange', 'Moov Africa'] }),
  country('MU', 'Mauritius', 'standard', ['africa'], { '5G': ['my.t', 'Emtel'] }),
  country('MW', 'Malawi', 'premium', ['africa'], { '4G': ['Airtel', 'TNM'] }),
  country('MZ', 'Mozambique', 'premium', ['africa'], { '5G': ['Vodacom'], '4G': ['Movitel'] }),
  country('NA', 'Namibia', 'premium', ['africa'], { '4G': ['MTC', 'Telecom Namibia'] }),
  country('NG', 'Nigeria', 'standard', ['africa'], { '5G': ['MTN', 'Airtel'], '4G': ['Glo'] }),
  country('RE', 'Réunion', 'standard', ['africa'], { '5G': ['Orange', 'SFR'] }),
  country('RW', 'Rwanda', 'standard', ['africa'], { '4G': ['MTN', 'Airtel'] }),
  country('SC', 'Seychelles', 'remote', ['africa'], { '5G': ['Airtel'], '4G': ['Cable & Wireless'] }),
  country('SL', 'Sierra Leone', 'remote', ['africa'], { '4G': ['Orange', 'Africell'] }),
  country('SN', 'Senegal', 'premium', ['africa'], { '5G': ['Orange', 'Yas'] }),
  country('SZ', 'Eswatini', 'premium', ['africa'], { '4G': ['MTN', 'Eswatini Mobile'] }),
  country('TD', 'Chad', 'remote', ['africa'], { '4G': ['Airtel', 'Moov Africa'] }),
  country('TG', 'Togo', 'premium', ['africa'], { '5G': ['Yas'], '4G': ['Moov Africa'] }),
  country('TN', 'Tunisia', 'standard', ['africa'], { '5G': ['Ooredoo', 'Orange', 'Tunisie Telecom'] }),
  country('TZ', 'Tanzania', 'standard', ['africa'], { '5G': ['Vodacom', 'Airtel', 'Yas'] }),
  country('UG', 'Uganda', 'standard', ['africa'], { '5G': ['MTN', 'Airtel'] }),
  country('ZA', 'South Africa', 'standard', ['africa'], { '5G': ['Vodacom', 'MTN'] }),
  country('ZM', 'Zambia', 'premium', ['africa'], { '5G': ['MTN', 'Airtel'] }),
  country('ZW', 'Zimbabwe', 'premium', ['africa'], { '5G': ['Econet'], '4G': ['NetOne'] }),
];

/** The Americas and the Caribbean. */
const AMERICAN_COUNTRIES = [
  country('AG', 'Antigua and Barbuda', 'premium', ['caribbean'], { '4G': ['Flow', 'Digicel'] }),
  country('AI', 'Anguilla', 'premium', ['caribbean'], { '4G': ['Flow', 'Digicel'] }),
  country('AR', 'Argentina', 'standard', ['latin-america'], { '5G': ['Personal', 'Claro', 'Movistar'] }),
  country('AW', 'Aruba', 'premium', ['caribbean'], { '5G': ['SETAR'], '4G': ['Digicel'] }),
  country('BB', 'Barbados', 'premium', ['caribbean'], { '4G': ['Flow', 'Digicel'] }),
  country('BM', 'Bermuda', 'remote', ['caribbean'], { '5G': ['One'], '4G': ['Digicel'] }),
  country('BO', 'Bolivia', 'premium', ['latin-america'], { '4G': ['Entel', 'Tigo'] }),
  country('BR', 'Brazil', 'standard', ['latin-america'], { '5G': ['Vivo', 'Claro', 'TIM'] }),
  country('BS', 'Bahamas', 'remote', ['caribbean'], { '4G': ['BTC', 'Aliv'] }),
  country('BZ', 'Belize', 'remote', ['latin-america', 'caribbean'], { '4G': ['Digi', 'Smart'] }),
  country('CA', 'Canada', 'standard', ['north-america'], { '5G': ['Rogers', 'Bell', 'Telus'] }),
  country('CL', 'Chile', 'standard', ['latin-america'], { '5G': ['Entel', 'Movistar', 'WOM'] }),
  country('CO', 'Colombia', 'standard', ['latin-america'], { '5G': ['Claro', 'Movistar', 'Tigo'] }),
  country('CR', 'Costa Rica', 'standard', ['latin-america'], { '5G': ['Liberty', 'Claro'], '4G': ['Kölbi'] }),
  country('CW', 'Curaçao', 'premium', ['caribbean'], { '4G': ['Flow', 'Digicel'] }),
  country('DM', 'Dominica', 'premium', ['caribbean'], { '4G': ['Flow', 'Digicel'] }),
  country('DO', 'Dominican Republic', 'standard', ['caribbean', 'latin-america'], {
    '5G': ['Claro', 'Altice'],
  }),
  country('EC', 'Ecuador', 'standard', ['latin-america'], { '4G': ['Claro', 'Movistar'] }),
  country('GD', 'Grenada', 'premium', ['caribbean'], { '4G': ['Flow', 'Digicel'] }),
  country('GP', 'Guadeloupe', 'standard', ['caribbean'], { '5G': ['Orange'], '4G': ['Digicel'] }),
  country('GT', 'Guatemala', 'standard', ['latin-america'], { '5G': ['Tigo', 'Claro'] }),
  country('GY', 'Guyana', 'remote', ['latin-america', 'caribbean'], { '4G': ['GTT', 'Digicel'] }),
  country('HN', 'Honduras', 'premium', ['latin-america'], { '4G': ['Tigo', 'Claro'] }),
  country('HT', 'Haiti', 'remote', ['caribbean'], { '4G': ['Digicel', 'Natcom'] }),
  country('JM', 'Jamaica', 'premium', ['caribbean'], { '4G': ['Digicel', 'Flow'] }),
  country('KN', 'Saint Kitts and Nevis', 'premium', ['caribbean'], { '4G': ['Flow', 'Digicel'] }),
  country('KY', 'Cayman Islands', 'premium', ['caribbean'], { '4G': ['Flow', 'Digicel'] }),
  country('LC', 'Saint Lucia', 'premium', ['caribbean'], { '4G': ['Flow', 'Digicel'] }),
  country('MQ', 'Martinique', 'standard', ['caribbean'], { '5G': ['Orange'], '4G': ['Digicel'] }),
  country('MX', 'Mexico', 'standard', ['north-america', 'latin-america'], {
    '5G': ['Telcel', 'AT&T'],
    '4G': ['Movistar'],
  }),
  country('NI', 'Nicaragua', 'premium', ['latin-america'], { '4G': ['Claro', 'Tigo'] }),
  country('PA', 'Panama', 'standard', ['latin-america'], { '4G': ['+Móvil', 'Tigo'] }),
  country('PE', 'Peru', 'standard', ['latin-america'], { '5G': ['Claro', 'Entel', 'Movistar'] }),
  country('PR', 'Puerto Rico', 'standard', ['caribbean'], { '5G': ['T-Mobile', 'Liberty', 'Claro'] }),
  country('PY', 'Paraguay', 'premium', ['latin-america'], { '4G': ['Tigo', 'Personal'] }),
  country('SR', 'Suriname', 'remote', ['latin-america'], { '5G': ['Telesur'], '4G': ['Digicel'] }),
  country('SV', 'El Salvador', 'standard', ['latin-america'], { '4G': ['Tigo', 'Claro'] }),
  country('TC', 'Turks and Caicos Islands', 'premium', ['caribbean'], { '4G': ['Flow', 'Digicel'] }),
  country('TT', 'Trinidad and Tobago', 'premium', ['caribbean'], { '4G': ['bmobile', 'Digicel'] }),
  country('US', 'United States', 'standard', ['north-america'], { '5G': ['T-Mobile', 'AT&T', 'Verizon'] }),
  country('UY', 'Uruguay', 'standard', ['latin-america'], { '5G': ['Antel', 'Claro', 'Movistar'] }),
  country('VC', 'Saint Vincent and the Grenadines', 'premium', ['caribbean'], { '4G': ['Flow', 'Digicel'] }),
  country('VG', 'British Virgin Islands', 'premium', ['caribbean'], { '4G': ['Flow', 'Digicel', 'CCT'] }),
  country('VI', 'US Virgin Islands', 'standard', ['caribbean'], { '5G': ['T-Mobile', 'Liberty'] }),
];

/** Asia, including the Caucasus and the Middle East. */
const ASIAN_COUNTRIES = [
  country('AE', 'United Arab Emirates', 'standard', ['middle-east'], { '5G': ['e&', 'du'] }),
  country('AM', 'Armenia', 'standard', ['asia'], { '5G': ['Team', 'Ucom'], '4G': ['Viva'] }),
  country('AZ', 'Azerbaijan', 'standard', ['asia'], { '4G': ['Azercell', 'Bakcell'] }),
  country('BD', 'Bangladesh', 'standard', ['asia'], { '5G': ['Grameenphone', 'Robi'] }),
  country('BH', 'Bahrain', 'standard', ['middle-east'], { '5G': ['Batelco', 'stc', 'Zain'] }),
  country('BN', 'Brunei', 'premium', ['asia'], { '5G': ['DST', 'imagine'] }),
  country('BT', 'Bhutan', 'remote', ['asia'], { '5G': ['B-Mobile', 'TashiCell'] }),
  country('CN', 'China', 'standard', ['asia'], { '5G': ['China Unicom', 'China Mobile', 'China Telecom'] }),
  country('GE', 'Georgia', 'standard', ['asia'], { '4G': ['Magti', 'Silknet'] }),
  country('HK', 'Hong Kong', 'budget', ['asia'], { '5G': ['csl', '3', 'SmarTone'] }),
  country('ID', 'Indonesia', 'budget', ['asia'], { '5G': ['Telkomsel', 'Indosat'], '4G': ['XLSmart'] }),
  country('IL', 'Israel', 'budget', ['middle-east'], { '5G': ['Partner', 'Cellcom', 'Pelephone'] }),
  country('IN', 'India', 'standard', ['asia'], { '5G': ['Airtel', 'Jio'], '4G': ['Vi'] }),
  country('IQ', 'Iraq', 'premium', ['middle-east'], { '4G': ['Zain', 'Asiacell'] }),
  country('JO', 'Jordan', 'standard', ['middle-east'], { '5G': ['Zain', 'Orange', 'Umniah'] }),
  country('JP', 'Japan', 'standard', ['asia'], { '5G': ['NTT Docomo', 'SoftBank', 'KDDI'] }),
  country('KG', 'Kyrgyzstan', 'standard', ['asia'], { '4G': ['Beeline', 'O!'] }),
  country('KH', 'Cambodia', 'standard', ['asia'], { '4G': ['Smart', 'Cellcard', 'Metfone'] }),
  country('KR', 'South Korea', 'standard', ['asia'], { '5G': ['SK Telecom', 'KT', 'LG U+'] }),
  country('KW', 'Kuwait', 'standard', ['middle-east'], { '5G': ['Zain', 'Ooredoo', 'stc'] }),
  country('KZ', 'Kazakhstan', 'standard', ['asia'], { '5G': ['Kcell', 'Tele2'], '4G': ['Beeline'] }),
  country('LA', 'Laos', 'standard', ['asia'], { '4G': ['Unitel', 'Lao Telecom'] }),
  country('LB', 'Lebanon', 'premium', ['middle-east'], { '4G': ['touch', 'Alfa'] }),
  country('LK', 'Sri Lanka', 'standard', ['asia'], { '4G': ['Dialog', 'SLT-Mobitel'] }),
  country('MN', 'Mongolia', 'premium', ['asia'], { '4G': ['Mobicom', 'Unitel'] }),
  country('MO', 'Macao', 'standard', ['asia'], { '5G': ['CTM'], '4G': ['3'] }),
  country('MV', 'Maldives', 'premium', ['asia'], { '5G': ['Dhiraagu', 'Ooredoo'] }),
  country('MY', 'Malaysia', 'budget', ['asia'], { '5G': ['Maxis', 'CelcomDigi', 'U Mobile'] }),
  country('NP', 'Nepal', 'standard', ['asia'], { '4G': ['Ncell', 'Nepal Telecom'] }),
  country('OM', 'Oman', 'standard', ['middle-east'], { '5G': ['Omantel', 'Ooredoo', 'Vodafone'] }),
  country('PH', 'Philippines', 'standard', ['asia'], { '5G': ['Globe', 'Smart', 'DITO'] }),
  country('PK', 'Pakistan', 'standard', ['asia'], { '4G': ['Jazz', 'Zong'] }),
  country('QA', 'Qatar', 'standard', ['middle-east'], { '5G': ['Ooredoo', 'Vodafone'] }),
  country('SA', 'Saudi Arabia', 'standard', ['middle-east'], { '5G': ['stc', 'Mobily', 'Zain'] }),
  country('SG', 'Singapore', 'budget', ['asia'], { '5G': ['Singtel', 'StarHub', 'M1'] }),
  country('TH', 'Thailand', 'budget', ['asia'], { '5G': ['AIS', 'True'] }),
  country('TJ', 'Tajikistan', 'premium', ['asia'], { '4G': ['Tcell', 'MegaFon'] }),
  country('TW', 'Taiwan', 'standard', ['asia'], {
    '5G': ['Chunghwa Telecom', 'Taiwan Mobile', 'FarEasTone'],
  }),
  country('UZ', 'Uzbekistan', 'standard', ['asia'], { '5G': ['Ucell', 'Beeline'] }),
  country('VN', 'Vietnam', 'budget', ['asia'], { '5G': ['Viettel', 'VinaPhone', 'MobiFone'] }),
];

/** Europe, including the Balkans. */
const EUROPEAN_COUNTRIES = [
  country('AD', 'Andorra', 'premium', ['europe'], { '5G': ['Andorra Telecom'] }),
  country('AL', 'Albania', 'standard', ['europe', 'balkans'], { '4G': ['Vodafone', 'One Albania'] }),
  country('AT', 'Austria', 'budget', ['europe'], { '5G': ['A1', 'Magenta Telekom', 'Drei'] }),
  country('BA', 'Bosnia and Herzegovina', 'standard', ['europe', 'balkans'], {
    '4G': ['BH Telecom', 'm:tel'],
  }),
  country('BE', 'Belgium', 'budget', ['europe'], { '5G': ['Proximus', 'Orange'] }),
  country('BG', 'Bulgaria', 'budget', ['europe', 'balkans'], { '5G': ['A1', 'Vivacom', 'Yettel'] }),
  country('CH', 'Switzerland', 'standard', ['europe'], { '5G': ['Swisscom', 'Sunrise', 'Salt'] }),
  country('CY', 'Cyprus', 'budget', ['europe'], { '5G': ['Cyta', 'Epic'] }),
  country('CZ', 'Czechia', 'budget', ['europe'], { '5G': ['T-Mobile', 'O2', 'Vodafone'] }),
  country('DE', 'Germany', 'budget', ['europe'], { '5G': ['Telekom', 'Vodafone', 'O2'] }),
  country('DK', 'Denmark', 'budget', ['europe'], { '5G': ['TDC', 'Telenor', '3'] }),
  country('EE', 'Estonia', 'budget', ['europe'], { '5G': ['Telia', 'Elisa', 'Tele2'] }),
  country('ES', 'Spain', 'budget', ['europe'], { '5G': ['Movistar', 'Orange', 'Vodafone'] }),
  country('FI', 'Finland', 'budget', ['europe'], { '5G': ['Elisa', 'DNA', 'Telia'] }),
  country('FO', 'Faroe Islands', 'premium', ['europe'], { '5G': ['Føroya Tele'], '4G': ['Nema'] }),
  country('FR', 'France', 'budget', ['europe'], { '5G': ['Orange', 'Bouygues Telecom', 'SFR'] }),
  country('GB', 'United Kingdom', 'budget', ['europe'], { '5G': ['EE', 'Vodafone', 'O2'] }),
  country('GG', 'Guernsey', 'standard', ['europe'], { '4G': ['Sure', 'JT'] }),
  country('GI', 'Gibraltar', 'standard', ['europe'], { '5G': ['Gibtelecom'] }),
  country('GR', 'Greece', 'budget', ['europe', 'balkans'], { '5G': ['Cosmote', 'Vodafone', 'Nova'] }),
  country('HR', 'Croatia', 'budget', ['europe', 'balkans'], { '5G': ['Hrvatski Telekom', 'A1', 'Telemach'] }),
  country('HU', 'Hungary', 'budget', ['europe'], { '5G': ['Magyar Telekom', 'One', 'Yettel'] }),
  country('IE', 'Ireland', 'budget', ['europe'], { '5G': ['Vodafone', 'Three', 'eir'] }),
  country('IM', 'Isle of Man', 'standard', ['europe'], { '4G': ['Manx Telecom', 'Sure'] }),
  country('IS', 'Iceland', 'budget', ['europe'], { '5G': ['Síminn', 'Nova'] }),
  country('IT', 'Italy', 'budget', ['europe'], { '5G': ['TIM', 'Vodafone', 'WindTre'] }),
  country('JE', 'Jersey', 'standard', ['europe'], { '5G': ['JT'], '4G': ['Sure'] }),
  country('LI', 'Liechtenstein', 'standard', ['europe'], { '5G': ['Swisscom'], '4G': ['FL1'] }),
  country('LT', 'Lithuania', 'budget', ['europe'], { '5G': ['Telia', 'Tele2', 'Bitė'] }),
  country('LU', 'Luxembourg', 'budget', ['europe'], { '5G': ['POST', 'Tango', 'Orange'] }),
  country('LV', 'Latvia', 'budget', ['europe'], { '5G': ['LMT', 'Tele2', 'Bite'] }),
  country('MC', 'Monaco', 'premium', ['europe'], { '5G': ['Monaco Telecom'] }),
  country('MD', 'Moldova', 'standard', ['europe'], { '4G': ['Orange', 'Moldcell'] }),
  country('ME', 'Montenegro', 'standard', ['europe', 'balkans'], { '5G': ['Crnogorski Telekom', 'One'] }),
  country('MK', 'North Macedonia', 'standard', ['europe', 'balkans'], { '5G': ['Makedonski Telekom', 'A1'] }),
  country('MT', 'Malta', 'budget', ['europe'], { '5G': ['Epic', 'GO', 'Melita'] }),
  country('NL', 'Netherlands', 'budget', ['europe'], { '5G': ['KPN', 'Odido', 'Vodafone'] }),
  country('NO', 'Norway', 'budget', ['europe'], { '5G': ['Telenor', 'Telia', 'ice'] }),
  country('PL', 'Poland', 'budget', ['europe'], { '5G': ['Orange', 'Play', 'T-Mobile'] }),
  country('PT', 'Portugal', 'budget', ['europe'], { '5G': ['MEO', 'NOS', 'Vodafone'] }),
  country('RO', 'Romania', 'budget', ['europe', 'balkans'], { '5G': ['Orange', 'Vodafone', 'Digi'] }),
  country('RS', 'Serbia', 'standard', ['europe', 'balkans'], { '5G': ['mts', 'Yettel', 'A1'] }),
  country('SE', 'Sweden', 'budget', ['europe'], { '5G': ['Telia', 'Tele2', 'Telenor'] }),
  country('SI', 'Slovenia', 'budget', ['europe', 'balkans'], {
    '5G': ['Telekom Slovenije', 'A1', 'Telemach'],
  }),
  country('SK', 'Slovakia', 'budget', ['europe'], { '5G': ['Orange', 'Telekom', 'O2'] }),
  country('TR', 'Türkiye', 'budget', ['europe', 'middle-east'], {
    '4G': ['Turkcell', 'Vodafone', 'Türk Telekom'],
  }),
  country('UA', 'Ukraine', 'standard', ['europe'], { '4G': ['Kyivstar', 'Vodafone', 'lifecell'] }),
];

/** Oceania. */
const OCEANIAN_COUNTRIES = [
  country('AU', 'Australia', 'standard', ['oceania'], { '5G': ['Telstra', 'Optus', 'Vodafone'] }),
  country('CK', 'Cook Islands', 'remote', ['oceania'], { '4G': ['Vodafone'] }),
  country('FJ', 'Fiji', 'premium', ['oceania'], { '5G': ['Vodafone'], '4G': ['Digicel'] }),
  country('GU', 'Guam', 'premium', ['oceania'], { '5G': ['GTA', 'Docomo Pacific'] }),
  country('NC', 'New Caledonia', 'remote', ['oceania'], { '4G': ['Mobilis'] }),
  country('NR', 'Nauru', 'remote', ['oceania'], { '4G': ['Digicel'] }),
  country('NZ', 'New Zealand', 'standard', ['oceania'], { '5G': ['One NZ', 'Spark', '2degrees'] }),
  country('PF', 'French Polynesia', 'remote', ['oceania'], { '5G': ['Vini'], '4G': ['Vodafone'] }),
  country('PG', 'Papua New Guinea', 'remote', ['oceania'], { '4G': ['Digicel', 'Bmobile'] }),
  country('SB', 'Solomon Islands', 'remote', ['oceania'], { '4G': ['Our Telekom', 'bmobile'] }),
  country('TO', 'Tonga', 'remote', ['oceania'], { '4G': ['Digicel', 'U-Call'] }),
  country('VU', 'Vanuatu', 'remote', ['oceania'], { '4G': ['Vodafone', 'Digicel'] }),
  country('WS', 'Samoa', 'remote', ['oceania'], { '4G': ['Vodafone', 'Digicel'] }),
];

/**
 * Every country in which the sandbox sells, by ascending code, so that any selection is a sorted coverage. The
 * operators are real, so that a partner's shop looks the same in Sandbox and Live.
 */
export const SANDBOX_COUNTRIES: readonly SandboxCountry[] = [
  ...AFRICAN_COUNTRIES,
  ...AMERICAN_COUNTRIES,
  ...ASIAN_COUNTRIES,
  ...EUROPEAN_COUNTRIES,
  ...OCEANIAN_COUNTRIES,
].sort((a, b) => (a.code < b.code ? -1 : 1));
