"""English pages that are no documents (made up)."""

from __future__ import annotations

import json

from tests.corpus.junk.parts import SUBSTANCES, bare, divs, links, modern, page, tables

_S = SUBSTANCES


def _site_search() -> str:
    hits = "".join(
        f'<div class="hit"><h3><a href="/datasheets/{s.cas}">{s.en} – safety data sheet (CAS {s.cas})</a></h3><p class="snippet">'
        f"… <b>{s.en}</b>, formula {s.formula}, is a hazardous substance. Flammable liquid, flash point {n - 20} °C. Causes skin irritation, "
        f'toxic if inhaled. Store in a cool place away from …</p><span class="url">chem.example/datasheets/{s.cas} – {n * 3} kB – cached</span></div>'
        for n, s in enumerate(_S[:30])
    )
    body = f"<h1>Search results for “hazardous substance”</h1><p>Results 1 - 30 of 1,284 (0.21 seconds)</p>{hits}<p>1 2 3 4 5 … 43 Next</p>"
    return page("hazardous substance - Search - ChemInfo", modern(body))


def _web_search() -> str:
    hits = "".join(
        f'<li class="algo"><h2><a href="http://r.example/{n}">{s.en} | {s.cas} | Properties, hazards and uses</a></h2><cite>www.lab{n}.example › chemicals › {s.cas}</cite>'
        f"<p>Mar {n % 28 + 1}, 2023 — {s.en} ({s.formula}) reacts violently with oxidizing agents. Vapours may form explosive mixtures with air. Boiling point {40 + n * 3} °C ...</p></li>"
        for n, s in enumerate(_S[5:25])
    )
    ads = "".join(f"<li><a href='/ad{n}'>Buy {s.en} 99% online</a><p>Fast delivery. Bulk prices from 25 kg.</p></li>" for n, s in enumerate(_S[:4]))  # fmt: skip
    asked = "".join(f"<div>Is {s.en.lower()} toxic to humans?</div>" for s in _S[:6])
    body = f"<div>About 2,310,000 results</div><ol class='ads'>{ads}</ol><div><h3>People also ask</h3>{asked}</div><ol>{hits}</ol><div>Related searches</div><ul>{links([f'{s.en} msds pdf' for s in _S[:8]])}</ul>"
    return page("solvent explosion limits - Findit", divs(body))


def _contents() -> str:
    chapters = ["Atomic structure", "Chemical bonding", "Acids and bases", "Thermodynamics", "Reaction kinetics", "Electrochemistry", "Toxic gases", "Storage of flammable liquids", "Explosives", "Fire protection"]  # fmt: skip
    rows = "".join(
        f"<tr><td>{n}</td><td><b>{name}</b></td><td align=right>{n * 31}</td></tr>" + "".join(f"<tr><td>{n}.{k}</td><td><a href='ch{n}_{k}.htm'>{name} of {s.en.lower()}</a></td><td align=right>{n * 31 + k * 4}</td></tr>" for k, s in enumerate(_S[n : n + 7], 1))
        for n, name in enumerate(chapters, 1)
    )  # fmt: skip
    body = f"<h1>Handbook of Industrial Chemistry and Safety</h1><h2>Table of contents</h2><table>{rows}</table><p>Appendix A: Units. Appendix B: Index of CAS numbers.</p>"
    return page("Handbook of Industrial Chemistry and Safety - Contents", tables(body))


def _a_to_z() -> str:
    letters = "".join(
        f"<h2 id='{c}'>{c}</h2><ul>{links([f'{s.en} [{s.cas}]' for s in _S if s.en[0].upper() == c] + [f'{c}-compound {k}' for k in range(6)], '/msds/')}</ul>"
        for c in "ABCDEFGHIKMNPSTV"
    )
    return page("MSDS index A-Z", divs(f"<h1>Material safety data sheets A–Z</h1><p>Click on a chemical to open its safety data sheet.</p>{letters}"))  # fmt: skip


def _category() -> str:
    cards = "".join(
        f'<article class="card"><a href="/p/{s.cas}"><img src="/i/{s.cas}.jpg" alt="{s.en}"></a><h3><a href="/p/{s.cas}">{s.en}, ACS reagent, ≥99.{n % 9}%</a></h3>'
        f"<p>CAS {s.cas} · {s.formula}</p><p>Available in 100 mL, 500 mL, 2.5 L</p><p><a href='/sds/{s.cas}'>SDS</a> · <a href='/compare'>Compare</a></p></article>"
        for n, s in enumerate(_S[:36])
    )
    body = f"<h1>Solvents and reagents</h1><p>Showing 1–36 of 412 products</p><div>Sort by: Relevance | Price | Name</div>{cards}<div>Page 1 of 12</div>"
    return page("Solvents and reagents | Example Lab Supply", modern(body))


def _shell() -> str:
    state = json.dumps({"substances": [s._asdict() | {"flashPoint": n - 20, "hazards": ["H225", "H319"]} for n, s in enumerate(_S)], "i18n": {"loading": "Loading…"}})  # fmt: skip
    body = f'<noscript><div class="msg"><h2>JavaScript is required</h2><p>Please enable JavaScript in your browser to view chemical safety data in this application.</p></div></noscript><div id="root"><div class="spinner">Loading...</div></div><script>window.__STATE__={state}</script><script src="/static/js/main.8f2a.js"></script>'
    return page("Chemical Safety Explorer", body)


def _login() -> str:
    terms = "".join(f"<p>{n}. The user is responsible for the safety of the account and must not share the password. Access to safety data sheets and hazardous substance registers may be restricted.</p>" for n in range(1, 9))  # fmt: skip
    form = '<form action="/login" method="post"><label>E-mail</label><input name="u"><label>Password</label><input type="password" name="p"><button>Log in</button></form>'
    body = f"<h1>Log in to continue</h1><p>Please log in or create an account to download the safety data sheet of Benzene (CAS 71-43-2). Registration is free.</p>{form}<p><a href='/forgot'>Forgot your password?</a> <a href='/new'>Create an account</a></p><div class='box'><h3>Conditions of registration</h3>{terms}</div>"
    return page("Log in | SDS Library", modern(body))


def _parked() -> str:
    topics = ["Chemical Safety Training", "MSDS Software", "Hazardous Waste Disposal", "Lab Chemicals", "Toxic Exposure Lawyer", "Acid Storage Cabinets", "Spill Kits", "Fire Protection"]  # fmt: skip
    body = f"<h1>hazardchem.example</h1><p>This domain may be for sale. <a href='/buy'>Buy this domain</a></p><h2>Related searches</h2><ul>{links(topics * 2)}</ul><p>The sponsored listings displayed above are served automatically by a third party. Neither the service provider nor the domain owner maintain any relationship with the advertisers.</p>"
    return page("hazardchem.example", bare(body))


def _not_found() -> str:
    popular = links([f"{s.en} safety data sheet" for s in _S[:20]])
    body = f"<h1>Sorry, we can't find that page</h1><p>The page you are looking for may have been moved, renamed or deleted. Check the address or use the search. Error code 404.</p><h2>Popular chemicals</h2><ul>{popular}</ul><h2>Need help?</h2><p>Call our safety hotline or write to us. We will be glad to help you find the right safety data sheet.</p>"
    return page("Page not found - Example Chemicals", modern(body))


def _maintenance() -> str:
    body = "<h1>We'll be back soon</h1><p>The chemical database is down for scheduled maintenance between 02:00 and 06:00 UTC. We are upgrading our storage and our exposure limit tables. Please try again later. In an emergency call your local poison centre.</p><p>503 Service temporarily unavailable</p>"
    return page("Scheduled maintenance", bare(body))


def _captcha() -> str:
    body = "<h1>Checking your browser before accessing chemdb.example</h1><p>This process is automatic. Your browser will redirect to your requested content shortly. Please allow up to 5 seconds…</p><form><p>Confirm that you are not a robot. Select all images with a hazard symbol.</p><input type=checkbox></form><p>Ray ID: 7d1f2ac9. Performance and security by Example Shield.</p>"
    return page("Just a moment...", bare(body))


def _forbidden() -> str:
    body = "<h1>Access denied</h1><p>You do not have permission to access “/toxicity/71-43-2” on this server. Requests from your network were blocked because of unusual activity. If you believe that this is an error, contact the administrator and quote reference 18.2f1c3417.1700000000.</p><hr><p>403 Forbidden</p>"
    return page("Access denied", bare(body))


def _tag() -> str:
    posts = "".join(
        f"<article class='post'><h2><a href='/2023/{n}'>{t} {s.en.lower()}</a></h2><div class='meta'>By admin · {n} comments · Filed under Safety</div><p>{s.en} is one of the chemicals that our readers ask about most. In this post we look at its hazards, its storage and what to do after a spill […]</p><a href='/2023/{n}'>Read more →</a></article>"
        for n, (t, s) in enumerate(zip(["Five facts about", "Is it safe to use", "What you should know about", "News on", "How to store"] * 4, _S[10:30], strict=True))
    )  # fmt: skip
    return page("Tag: hazardous chemicals | The Lab Blog", divs(f"<h1>Tag: hazardous chemicals</h1>{posts}<div>← Older posts</div>"))  # fmt: skip


def _cookie_wall() -> str:
    vendors = "".join(f"<li><b>Adpartner {n}</b>: stores and accesses information on a device, creates profiles, measures performance. Retention {n * 30} days.</li>" for n in range(1, 60))  # fmt: skip
    body = f"<h1>Your privacy matters</h1><p>We and our 812 partners use cookies and process personal data to show you chemical safety content, to measure it and to protect the service. You can accept or reject all, or manage your choices below. Rejecting may limit access to data sheets.</p><button>Accept all</button><button>Reject all</button><h2>Our partners</h2><ul>{vendors}</ul>"
    return page("Consent | ChemSafe Magazine", bare(body))


def _empty_product() -> str:
    names = ["Melting point", "Boiling point", "Flash point", "Density", "Vapour pressure", "Explosive limits", "Solubility in water", "Auto-ignition temperature", "Viscosity", "pH", "Oral toxicity (LD50)", "Dermal toxicity", "Inhalation toxicity (LC50)", "Skin irritation", "Carcinogenicity", "Exposure limits", "Storage conditions", "First aid", "Extinguishing media", "UN number", "Hazard class", "Packing group", "Disposal"]  # fmt: skip
    rows = "".join(f"<tr><th>{name}</th><td>{('No data available', 'Not available', 'N/A', '-')[n % 4]}</td></tr>" for n, name in enumerate(names))  # fmt: skip
    heads = "".join(f"<h2>{n}. {name}</h2><p>No data available</p>" for n, name in enumerate(["Hazards identification", "First-aid measures", "Fire-fighting measures", "Accidental release measures", "Handling and storage", "Exposure controls/personal protection", "Stability and reactivity", "Toxicological information", "Ecological information", "Disposal considerations", "Transport information"], 2))  # fmt: skip
    body = f"<h1>2-(4-Butylphenyl)-5-methyl-1,3-oxazole</h1><p>CAS 000000-00-0</p><table>{rows}</table>{heads}<p>Be the first to add information on this substance.</p>"
    return page("2-(4-Butylphenyl)-5-methyl-1,3-oxazole | CompoundBase", modern(body))


def _price_list() -> str:
    rows = "".join(
        f"<tr><td>{1000 + n * 7}</td><td>{s.en}</td><td>{s.cas}</td><td>99.{n % 10}%</td><td>{(1, 5, 25, 200)[n % 4]} {'L' if n % 2 else 'kg'}</td><td>{12 + n * 3}.50</td><td>{'in stock' if n % 3 else '2 weeks'}</td></tr>"
        for n, s in enumerate(_S)
    )
    body = f"<h1>Price list 2024</h1><p>All prices in EUR, excluding VAT and freight. Minimum order 100 EUR.</p><table><tr><th>Art. No.</th><th>Product</th><th>CAS</th><th>Purity</th><th>Pack</th><th>Price</th><th>Availability</th></tr>{rows}</table><p>Dangerous goods surcharge 25.00 EUR for each shipment.</p>"
    return page("Price list 2024 - Example Chemicals", tables(body))


def _shop() -> str:
    offers = "".join(
        f'<div class="offer"><b>{s.en}</b> {s.cas} <span>{s.formula}</span><br>Supplier: Trade Co. {n} (verified, 8 years)<br>Min. order: {n + 1} tonnes · Price: US$ {500 + n * 20}-{700 + n * 20} / tonne<br>Payment: L/C, T/T · Port: any <a href="/inquire/{n}">Contact now</a> <a href="/basket/{n}">Add to basket</a></div>'
        for n, s in enumerate(_S)
    )
    body = f"<h1>Wholesale chemical raw materials</h1><p>2,184 products from 311 suppliers. Free samples, best price, fast shipping, safe packaging.</p>{offers}"
    return page("Chemical raw materials, wholesale | TradeHub", divs(body))


def _link_farm() -> str:
    groups = "".join(f"<h3>{name}</h3><p>{links([f'{s.en} {word}' for s in _S[k : k + 18]], '/go/', ', ', '{}')}</p>" for k, (name, word) in enumerate([("Safety", "safety"), ("Suppliers", "supplier"), ("Prices", "price"), ("Manufacturers", "manufacturer"), ("Hazards", "hazards"), ("Uses", "uses")]))  # fmt: skip
    return page("Best chemical links 2024", bare(f"<h1>Chemistry links directory</h1><p>Hand-picked links to the best sites about chemicals, toxic substances and safety. Submit your site for free.</p>{groups}"))  # fmt: skip


def _jobs() -> str:
    duties = ["Prepare safety data sheets and labels for hazardous mixtures", "Monitor exposure limits, ventilation and emissions at our site", "Train staff in the handling of flammable and toxic chemicals", "Investigate accidents, spills and near misses", "Keep the permits for storage and transport up to date", "Support the emergency team and the fire brigade"]  # fmt: skip
    asked = ["Degree in chemistry, chemical engineering or occupational health", "Three years of experience in chemical safety", "Knowledge of OSHA, REACH and GHS", "Fluent English; a driving licence"]  # fmt: skip
    offer = [
        "30 days of leave",
        "Pension plan and health insurance",
        "Free parking and a canteen",
        "Flexible hours",
    ]
    lists = "".join(f"<h3>{h}</h3><ul>{''.join(f'<li>{x}</li>' for x in xs)}</ul>" for h, xs in (("Your tasks", duties), ("Your profile", asked), ("We offer", offer)))  # fmt: skip
    body = f"<h1>Chemical safety officer (m/f/d), full time</h1><p>Example Polymers, Rivertown · posted 3 days ago · 41 applicants · salary 55,000 to 68,000 a year</p><p>We are a medium-sized maker of polymers and solvents with 600 employees. For our team we are looking for a safety officer who takes health and environment seriously.</p>{lists}<p>Apply online with your CV, salary expectation and earliest starting date. <a href='/apply'>Apply now</a></p><h3>Similar jobs</h3><ul>{links(['Laboratory technician', 'Process engineer', 'Toxicologist', 'Shift supervisor acid plant', 'HSE manager'])}</ul>"
    return page("Chemical safety officer - JobBoard", modern(body))


def _spam() -> str:
    lines = "".join(
        f"<p>Purchase {s.en.lower()} CAS {s.cas} best chemical price China factory supplier manufacturer. Our {s.en.lower()} is the high purity quality chemical for you the customer to be satisfied. The {s.en.lower()} {s.formula} is widely using in the field of chemical industry medicine pesticide. Welcome to inquiry {s.en.lower()} with the safety packing delivery. We have professional {s.en.lower()} team, warmly the friends from all over the world.</p>"
        for s in _S[:22]
    )
    body = f"<h1>Top acetone benzene sulfuric acid supplier best price 2024 factory</h1>{lines}<p>Hot tags: {', '.join(f'buy {s.en.lower()}' for s in _S[:30])}</p>"
    return page("Buy chemicals best price factory supplier", divs(body))


def _forum() -> str:
    threads = "".join(
        f"<tr><td><a href='/t/{n}'>{q.format(s.en.lower())}</a><br>by user{n * 7}</td><td>{n * 3 % 40}</td><td>{n * 211}</td><td>Today, {n % 24:02}:15</td></tr>"
        for n, (q, s) in enumerate(zip(["Can I mix {} with bleach?", "Where to dispose of {}", "{} smell in the basement", "Flash point of {}?", "Exam question on {}", "Gloves for {}"] * 6, _S[:36], strict=True))
    )  # fmt: skip
    body = f"<h1>Chemistry forum › Laboratory safety</h1><p>Moderators: admin, labrat. Users browsing this forum: 3 members and 27 guests.</p><table><tr><th>Topics</th><th>Replies</th><th>Views</th><th>Last post</th></tr>{threads}</table><p>You cannot post new topics in this forum. You cannot reply to topics in this forum.</p>"
    return page("Laboratory safety - Chemistry forum - Index", tables(body))


def _sitemap() -> str:
    parts = "".join(f"<h2>{name}</h2><ul>{links([f'{word} {s.en}' for s in _S[k::5]], f'/{k}/')}</ul>" for k, (name, word) in enumerate([("Products", "Buy"), ("Safety", "SDS for"), ("Applications", "Uses of"), ("Regulations", "Limits for"), ("News", "News on")]))  # fmt: skip
    return page("Sitemap", modern(f"<h1>Sitemap</h1>{parts}"))


def _terms() -> str:
    clauses = [
        "The information on this site is given in good faith and without warranty of any kind. The operator is not liable for damage, loss or injury that results from its use.",
        "Safety data sheets are provided by third parties. The user must check every value against the manufacturer's own sheet before handling a hazardous substance.",
        "The content may be viewed and printed for personal use. Copying, republication and automated retrieval need written permission.",
        "The operator may restrict, suspend or end access at any time, in particular where these terms are violated or where the security of the service is at risk.",
        "Links to other sites are offered for convenience. The operator has no influence on their content and accepts no responsibility for it.",
        "To the extent permitted by law, liability for indirect damage, lost profit and business interruption is excluded. Nothing in these terms limits liability for death or personal injury.",
        "Users who upload content grant the operator a worldwide, royalty-free licence and guarantee that no third-party rights are infringed.",
        "These terms are governed by the law of the operator's seat. The courts there have exclusive jurisdiction. Should a provision be void, the others remain in force.",
    ]
    body = "<h1>Terms of use and disclaimer</h1><p>Last updated: 1 March 2024. By accessing this site you accept these terms.</p>" + "".join(f"<h2>{n}. {t}</h2><p>{c}</p><p>{clauses[(n + 2) % 8]}</p>" for n, (t, c) in enumerate(zip(["Disclaimer", "Safety data", "Copyright", "Access", "Links", "Liability", "User content", "Law"], clauses, strict=True), 1))  # fmt: skip
    return page("Terms of use - ChemInfo", modern(body))


def _changelog() -> str:
    entries = "".join(
        f"<h2>Version {9 - n // 4}.{n % 4}.0 (2023-{n % 12 + 1:02}-10)</h2><ul><li>Fixed a crash when the density of {s.en.lower()} was exported</li><li>Added {s.cas} to the list of restricted substances</li><li>Updated exposure limits table to the 2023 edition</li><li>Improved the speed of the reaction editor by {n + 5} %</li><li>Removed support for old browsers</li></ul>"
        for n, s in enumerate(_S[:20])
    )
    return page("Release notes | SDS Author", divs(f"<h1>Release notes</h1><p>What changed in the SDS authoring software.</p>{entries}"))  # fmt: skip


def _directory() -> str:
    firms = "".join(
        f"<li><b>Example {s.en} Works No. {n}</b><br>{n} Harbour Road, Rivertown · Tel. 000-000-{1000 + n} · Products: {s.en} ({s.cas}), {_S[(n + 3) % 48].en}, {_S[(n + 7) % 48].en} · <a href='/f/{n}'>Profile</a> · <a href='/q/{n}'>Request a quote</a></li>"
        for n, s in enumerate(_S[:32])
    )
    return page("Chemical manufacturers directory", modern(f"<h1>Chemical manufacturers (1 - 32 of 950)</h1><ul>{firms}</ul>"))  # fmt: skip


def _news_list() -> str:
    items = "".join(
        f"<li><a href='/n/{n}'>{t.format(s.en.lower())}</a> <span>2024-02-{n % 28 + 1:02}</span></li>"
        for n, (t, s) in enumerate(zip(["Fire at {} plant under control", "Tanker with {} overturns on motorway", "Authority lowers limit for {}", "{} prices rise again", "Workers hospitalised after {} leak", "New permit for {} storage"] * 8, _S, strict=True))
    )  # fmt: skip
    return page("News archive - Safety Today", divs(f"<h1>News archive: accidents and regulation</h1><ul class='list'>{items}</ul><p>Page 1 of 88</p>"))  # fmt: skip


PAGES: dict[str, str] = {
    "site search": _site_search(), "web search": _web_search(), "contents": _contents(), "a to z": _a_to_z(), "category": _category(),
    "shell": _shell(), "login": _login(), "parked": _parked(), "not found": _not_found(), "maintenance": _maintenance(), "captcha": _captcha(),
    "forbidden": _forbidden(), "tag": _tag(), "cookie wall": _cookie_wall(), "empty product": _empty_product(), "price list": _price_list(),
    "shop": _shop(), "link farm": _link_farm(), "job": _jobs(), "spam": _spam(), "forum": _forum(), "sitemap": _sitemap(), "terms": _terms(),
    "changelog": _changelog(), "directory": _directory(), "news list": _news_list(),
}  # fmt: skip
